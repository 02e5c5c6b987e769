"""Composers, one module each."""
