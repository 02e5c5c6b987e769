"""Advantage methods: one module each, named as in the registry."""
