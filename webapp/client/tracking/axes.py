"""Steps of values by `define_metric`: the x-axis that a program gives its charts. Pure.

Source: https://docs.wandb.ai/ref/python/experiments/run#define_metric. A name with "*" at its end
stands for all that begin so; an exact name counts before it, and a longer one before a shorter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LARGEST_STEP = 2**31 - 1


class Axes:
    """Which number is the step of which names."""

    def __init__(self) -> None:
        self._axis: dict[str, str] = {}
        """Name of the number that is the step, by name or its beginning with "*"."""
        self._newest: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._axis)

    def define(self, name: str, axis: str | None) -> None:
        """Gives values of a name the number `axis` as their step; None: none.

        Raises:
            ValueError: "*" is within the name.
        """
        if "*" in name[:-1]:
            raise ValueError(f"define_metric: name = {name!r}: '*' is allowed at its end alone")
        if axis is not None:
            self._axis[name] = axis
        elif name in self._axis:
            del self._axis[name]

    def split(self, data: Mapping[str, Any]) -> dict[int | None, dict[str, Any]]:
        """Returns the values by step: the number of their axis in `data`, or the newest one. None:
        they have no axis, or it was never a whole number from 0."""
        for axis in set(self._axis.values()) & data.keys():
            if (step := whole(data[axis])) is not None:
                self._newest[axis] = step
        steps: dict[int | None, dict[str, Any]] = {}
        for name, value in data.items():
            step = self._newest.get(self._axis_of(name))
            steps.setdefault(step, {})[name] = value
        return steps

    def _axis_of(self, name: Any) -> str:
        if name in self._axis:
            return self._axis[name]
        if name in self._newest or name in self._axis.values():
            return name
        fitting = [one for one in self._axis if one[-1:] == "*" and str(name).startswith(one[:-1])]
        return self._axis[max(fitting, key=len)] if fitting else ""


def whole(value: Any) -> int | None:
    """Returns the step that a number is, of Python, numpy or torch; None if it is none."""
    if hasattr(value, "item") and not isinstance(value, int | float):
        try:
            value = value.item()
        except Exception:  # of several numbers torch raises a RuntimeError
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return int(value) if 0 <= value <= LARGEST_STEP and value == int(value) else None
