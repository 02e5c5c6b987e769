"""What a run has room for: names of values, and bytes of settings. Pure.

Invariant: a value of a name that was admitted is always admitted. What was logged to the run by
other processes is not known here; the server refuses what they leave no room for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from webapp.client.tracking import limits
from webapp.client.tracking.values import Fields

LEFT_OUT = (
    f"a run has {limits.MOST_SERIES} names of numbers and {limits.MOST_NAMES} of other values: "
    "values of further names are left out"
)


class Names:
    """Names under which a process has logged values."""

    def __init__(self) -> None:
        self.left_out = 0
        """Number of values that were not admitted."""
        self._numbers: set[str] = set()
        self._others: set[tuple[str, str]] = set()
        """Field and name of texts, tables and the like."""

    def admitted(self, fields: Fields) -> Fields:
        """Returns the values without those of further names, once the run has no room for them."""
        if fields.keys() == {"numbers"} and fields["numbers"].keys() <= self._numbers:
            return fields  # the usual case
        result: Fields = {}
        for field, values in fields.items():
            kept = {name: one for name, one in values.items() if self._admit(field, name)}
            self.left_out += len(values) - len(kept)
            if kept:
                result[field] = kept
        return result

    def _admit(self, field: str, name: str) -> bool:
        known, one, most = (
            (self._numbers, name, limits.MOST_SERIES)
            if field == "numbers"
            else (self._others, (field, name), limits.MOST_NAMES)
        )
        if one not in known and len(known) >= most:
            return False
        known.add(one)  # type: ignore[arg-type]
        return True


class Settings:
    """Sizes of a run's settings, or of its summary, by their first keys."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._total = 0

    def admitted(self, added: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings without those that the run has no room for."""
        result = {}
        for key, value in added.items():
            size = len(msgspec.json.encode({key: value}))
            total = self._total - self._sizes.get(key, 0) + size
            if total < limits.MOST_CONFIG_BYTES:
                self._sizes[key], self._total = size, total
                result[key] = value
        return result
