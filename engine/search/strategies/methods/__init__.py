"""Strategies, one module each."""
