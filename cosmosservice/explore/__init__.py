"""`cosmosservice explore`: a page to look at sessions, on this machine alone."""
