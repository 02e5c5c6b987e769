"""Allocators, one module each."""
