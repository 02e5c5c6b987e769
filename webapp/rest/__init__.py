"""REST layer that all operations share."""
