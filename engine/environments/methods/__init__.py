"""Environments: one module each."""
