"""The numbers that an event tells, by name. Pure.

Names: `reward`, `solved`, `step.FIELD`, `step.filtered_share` (of the step's trees), `phase.NAME`,
`reward.AGENT`, `share.AGENT` of a step's end; `FIELD.AGENT` of an agent's update;
`SPLIT.agent.AGENT`, `SPLIT.error.AGENT`, `SPLIT.FIELD` of an evaluation; `system.FIELD` of a
sample; `search.*`, `best.K`, `within.K`, `ends.*`, `stops.*` and `cost.*` of the trees of a step
(`telemetry.quality`). A field that events gain later is told too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

Scalar = tuple[str, float]
Told = tuple[str, Any]
"""A name, and what may be a number."""

LONGEST_NAME = 200
SYSTEM = "system."
"""What these tell is of the machine, not of what was learned: a resumed run keeps it."""

_NUMBERS = (int, float)
_LARGEST = 1e300
_OF_STEPS = {"phases": "phase", "reward_by_agent": "reward", "node_share": "share"}
_OF_SPLITS = {"agents": "agent", "standard_errors": "error"}
_PLAIN = ("reward", "solved")


def scalars(kind: str, payload: dict[str, Any]) -> list[Scalar]:
    """(name, value) of every finite number that the event tells; none for other kinds."""
    teller = _TELLERS.get(kind)
    told = teller(payload) if teller else []
    # Neither a truth value nor, since they compare so, NaN or an infinity.
    return [
        (name, float(value))
        for name, value in told
        if type(value) in _NUMBERS and -_LARGEST < value < _LARGEST
    ]


@lru_cache(maxsize=4096)
def clean(name: str, before: str = "", after: str = "") -> str:
    """`before`, name and `after` as a name that an address can hold; agents of other engines may be
    called anything."""
    name = f"{before}{name}{after}"
    return name.replace("/", "_").replace("\0", "_").replace("\\", "_")[:LONGEST_NAME]


def _step(payload: dict[str, Any]) -> list[Told]:
    told = []
    for field, value in payload.items():
        if isinstance(value, dict):
            told += _by_name(_OF_STEPS.get(field, field), value)
        elif field != "step":
            told.append((clean(field, "" if field in _PLAIN else "step."), value))
    filtered, trees = payload.get("filtered_trees"), payload.get("trees")
    if type(filtered) is int and type(trees) is int and trees:
        told.append(("step.filtered_share", filtered / trees))
    return told


def _update(payload: dict[str, Any]) -> list[Told]:
    after = f".{payload['agent']}"
    return [(clean(field, "", after), value) for field, value in payload.items() if field != "step"]


def _evaluation(payload: dict[str, Any]) -> list[Told]:
    split, told = payload["split"], []
    for field, value in payload.items():
        if isinstance(value, dict):
            told += _by_name(f"{split}.{_OF_SPLITS.get(field, field)}", value)
        elif field != "step":
            told.append((clean(field, f"{split}."), value))
    return told


def _sample(payload: dict[str, Any]) -> list[Told]:
    return [(clean(field, SYSTEM), value) for field, value in payload.items()]


def _by_name(prefix: str, values: dict[str, Any]) -> list[Told]:
    before = f"{prefix}."
    return [(clean(name, before), value) for name, value in values.items()]


_TELLERS: dict[str, Callable[[dict[str, Any]], list[Told]]] = {
    "step.end": _step,
    "agent.update": _update,
    "eval.result": _evaluation,
    "system.sample": _sample,
}
