"""What every source of MLflow's runs gives: a folder, a database, a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

Point = tuple[int, int, str, float]
"""Milliseconds, step, name, value."""
About = dict[str, str]
"""`id`, `name`, `status`, `start` in milliseconds."""


class BadStore(ValueError):
    """Raised for a source that is none of MLflow's, or an experiment that it does not have; names
    the value and the remedy."""


class Store(Protocol):
    def close(self) -> None: ...

    def experiments(self) -> dict[str, str]:
        """Returns the id of each experiment by name."""
        ...

    def runs(self, experiment: str) -> Iterator[tuple[About, Any]]:
        """Yields (about, key) of each run."""
        ...

    def values(self, key: Any, kind: str) -> dict[str, str]:
        """Returns the params or tags of a run."""
        ...

    def points(self, key: Any) -> Iterable[Point]: ...

    def files(self, key: Any) -> Iterable[tuple[str, int, str | None]]:
        """Returns path, bytes and, of a short text, the content of the artifacts of a run."""
        ...
