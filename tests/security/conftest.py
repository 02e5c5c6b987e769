"""Fixtures: one object of every kind to request."""

from tests.planted import arguments, cast, sessions, world

__all__ = ["arguments", "cast", "sessions", "world"]
