"""Annotations of a run: tags, notes, stars, and its activity."""
