"""Pages of the model registry."""
