"""Samplers, one module each."""
