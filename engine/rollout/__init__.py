"""Grows search trees: generation, verification, and the order of both."""
