"""Imports of what other programs have recorded, one module per format, as runs of a server."""
