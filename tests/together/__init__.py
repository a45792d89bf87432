"""Sessions, memories and artifacts on one account, as an application has them."""
