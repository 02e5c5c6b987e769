"""The same cast and queue as the tests of the web."""

from tests.webapp.conftest import cast, queue_in_memory

__all__ = ["cast", "queue_in_memory"]
