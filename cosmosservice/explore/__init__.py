"""`cosmosservice explore`: a local web page for looking at sessions."""
