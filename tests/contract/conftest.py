"""The same cast and queue as the tests of the web."""

from tests.webapp.conftest import queue_in_memory

__all__ = ["queue_in_memory"]
