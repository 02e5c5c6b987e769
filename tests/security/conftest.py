"""The queue of the tests of the web, and one of everything to ask for."""

from tests.planted import arguments, cast, sessions, world
from tests.webapp.conftest import queue_in_memory

__all__ = ["arguments", "cast", "queue_in_memory", "sessions", "world"]
