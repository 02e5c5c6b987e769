"""The numbers that an event tells, by name. Pure.

Names: `reward`, `solved`, `step.FIELD`, `phase.NAME`, `reward.AGENT`, `share.AGENT` of a step's
end; `FIELD.AGENT` of an agent's update; `SPLIT.agent.AGENT`, `SPLIT.error.AGENT`, `SPLIT.FIELD` of
an evaluation; `system.FIELD` of a sample; `search.*`, `best.K`, `within.K`, `ends.*`, `stops.*` and
`cost.*` of the trees of a step (`telemetry.quality`). A field that events gain later is told too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

Scalar = tuple[str, float]

LONGEST_NAME = 200
SYSTEM = "system."
"""What these tell is of the machine, not of what was learned: a resumed run keeps it."""

_OF_STEPS = {"phases": "phase", "reward_by_agent": "reward", "node_share": "share"}
_OF_SPLITS = {"agents": "agent", "standard_errors": "error"}
_PLAIN = ("reward", "solved")


def scalars(kind: str, payload: dict[str, Any]) -> Iterator[Scalar]:
    """(name, value) of every finite number that the event tells; none for other kinds."""
    if teller := _TELLERS.get(kind):
        for name, value in teller(payload):
            if _is_number(value):
                yield clean(name), float(value)


def clean(name: str) -> str:
    """A name that an address can hold; agents of other engines may be called anything."""
    return name.replace("/", "_").replace("\0", "_").replace("\\", "_")[:LONGEST_NAME]


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and abs(value) < 1e300


def _step(payload: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for field, value in payload.items():
        if isinstance(value, dict):
            yield from _by_name(_OF_STEPS.get(field, field), value)
        elif field != "step":
            yield (field if field in _PLAIN else f"step.{field}"), value


def _update(payload: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for field, value in payload.items():
        if field != "step":
            yield f"{field}.{payload['agent']}", value


def _evaluation(payload: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    split = payload["split"]
    for field, value in payload.items():
        if isinstance(value, dict):
            yield from _by_name(f"{split}.{_OF_SPLITS.get(field, field)}", value)
        elif field != "step":
            yield f"{split}.{field}", value


def _sample(payload: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for field, value in payload.items():
        yield f"{SYSTEM}{field}", value


def _by_name(prefix: str, values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        yield f"{prefix}.{name}", value


_TELLERS: dict[str, Callable[[dict[str, Any]], Iterator[tuple[str, Any]]]] = {
    "step.end": _step,
    "agent.update": _update,
    "eval.result": _evaluation,
    "system.sample": _sample,
}
