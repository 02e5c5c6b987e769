"""Integrations with trainers, one module each; each imports its library itself."""
