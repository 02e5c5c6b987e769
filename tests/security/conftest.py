"""One of everything to ask for."""

from tests.planted import arguments, cast, sessions, world

__all__ = ["arguments", "cast", "sessions", "world"]
