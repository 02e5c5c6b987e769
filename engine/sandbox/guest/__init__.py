"""Runs inside the sandbox: the standard library and this folder alone."""
