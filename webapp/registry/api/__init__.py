"""REST of the model registry."""
