"""Policy losses: one module each, named as in the registry."""
