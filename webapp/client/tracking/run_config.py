"""Settings and final values of a run that a program logs, by W&B's habits.

Not named `config`: a module of that name would hide `grove.config`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any


class Config(Mapping[str, Any]):
    """The run's settings, as a dictionary with attributes; each change is recorded."""

    def __init__(self, record: Callable[[dict[str, Any]], None]):
        self.__dict__["_record"] = record
        self.__dict__["_values"] = {}

    def update(self, given: Any = None, allow_val_change: bool = True, **more: Any) -> None:
        """Adds settings: a dictionary, an object (`settings_of`), or by name.

        Raises:
            TypeError: `given` is neither.
        """
        added = {**settings_of(given), **{str(key): one for key, one in more.items()}}
        self._values.update(added)
        if added:
            self._record(added)

    def setdefaults(self, given: Mapping[str, Any]) -> None:
        self.update({key: one for key, one in given.items() if key not in self._values})

    def persist(self) -> None:
        """Does nothing: each change is recorded at once."""

    def update_locked(self, given: Any, *_: Any, **__: Any) -> None:
        """Adds settings, as `update`."""
        self.update(given)

    merge_locked = update_locked

    def as_dict(self) -> dict[str, Any]:
        return dict(self._values)

    _as_dict = as_dict

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def __setattr__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __getattr__(self, key: str) -> Any:
        try:
            return self._values[key]
        except KeyError:
            raise AttributeError(key) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


def settings_of(given: Any) -> dict[str, Any]:
    """Returns the settings of a dictionary, or of an object: what its `items` or `vars` gives.

    Raises:
        TypeError: it has neither.
    """
    if given is None:
        return {}
    try:
        found = dict(given.items()) if callable(getattr(given, "items", None)) else vars(given)
    except TypeError:
        kind = type(given).__name__
        raise TypeError(
            f"config: give a dictionary or an object with attributes, not {kind}"
        ) from None
    return {str(key): one for key, one in found.items()}


class Summary(Config):
    """The run's final values: the newest number of each name, unless the program sets its own."""

    def _noted(self, numbers: Mapping[str, Any]) -> None:
        """Keeps numbers that were logged, which the server has already."""
        self._values.update(numbers)
