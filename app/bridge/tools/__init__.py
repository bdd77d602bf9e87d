"""What agents are given to work with: one table of functions, whatever surface calls them."""
