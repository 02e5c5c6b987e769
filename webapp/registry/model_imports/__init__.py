"""Imports that take minutes: a worker converts a GGUF file, or a package, to a version."""
