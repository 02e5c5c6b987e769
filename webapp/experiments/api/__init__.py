"""REST of experiments and runs."""
