"""Checks of a model's files that the site and the engine share, without torch or transformers."""
