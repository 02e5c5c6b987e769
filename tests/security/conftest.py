"""Fixtures: one object of every kind to request."""

from tests.helpers.planted import arguments, cast, sessions, world

__all__ = ["arguments", "cast", "sessions", "world"]
