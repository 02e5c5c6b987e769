"""REST schemas of a run's log, for requests and responses."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, Literal

from ninja import Schema
from pydantic import Field

from engine.events.vocabulary import RunState

EVENT = {
    "type": "array",
    "title": "seq, milliseconds since 1970, kind, payload",
    "items": {"type": ["integer", "string", "object"]},
    "minItems": 4,
    "maxItems": 4,
    "examples": [[1, 1790000000000, "step.start", {"step": 1}]],
}
STATE = {
    "type": "object",
    "properties": {
        "epoch": {"type": "string", "format": "uuid"},
        "seq": {"type": "integer"},
        "events": {"type": "array", "items": EVENT},
    },
    "required": ["epoch", "seq", "events"],
}


class Heard(Schema):
    """Response to the events of an external engine."""

    head_seq: int
    """Every event up to it is stored; the next event has `head_seq` + 1."""
    state: RunState
    stop_requested: bool
    """Whether the engine should write a checkpoint and emit run.state stopped."""


Payload = dict[str, Any]


class Folded(Schema):
    """Fold of a log, with the names of `static/js/stream/fold.js`; times are milliseconds."""

    epoch: uuid.UUID
    seq: int
    time: int
    startedAt: int
    run: Payload
    plan: Payload
    step: int
    stepStartedAt: int
    steps: list[Payload]
    updates: list[Payload]
    evaluations: list[Payload]
    checkpoints: list[Payload]
    health: list[Payload]
    """Warnings, oldest first; `closed` is null while a warning is open."""
    answer: Payload | None
    trees: list[Payload]
    """Trees of the last two steps."""
    waiting: Payload | None
    error: Payload | None
    logs: list[Payload]
    system: list[Payload]
    resumes: int
    logged: Payload
    """The newest values that a program logged, by kind and name: {step, seq, texts, tables,
    histograms, images, nonfinite}."""


class Place(Schema):
    seq: int
    tree: int
    node: int


class Moments(Schema):
    head: int
    first_solved: Place | None


class NodeDetail(Schema):
    """Payloads of the events of a node; null if not emitted yet."""

    tree: int
    node: int
    open: Payload
    close: Payload | None
    credit: Payload | None
    text: Payload | None
    learned: Payload | None
    """Values by token from an update: {agent, step, version, entropy, ratio}."""
    problem: Payload | None
    parent: Payload | None
    """Its parent's `close`; null for a child of the root."""


class StepOut(Schema):
    seq: int
    step: int
    seconds: float | None
    """Null if an external engine did not measure it."""
    phases: dict[str, float]
    waits: dict[str, float]
    """Seconds by name of the wait."""


class StepList(Schema):
    steps: list[StepOut]
    next: int | None


class LogLineOut(Schema):
    seq: int
    time: datetime
    level: str
    message: str


class LogLineList(Schema):
    lines: list[LogLineOut]
    next: int | None
    state: RunState
    """State of the run, which shows whether more may follow."""


class Backwards(Schema):
    cursor: int | None = Field(None, ge=0, lt=2**63)
    """`next` of the previous page, which has newer items."""
    limit: int = Field(50, ge=1, le=500)


class LoggedIn(Backwards):
    kind: Literal["texts", "tables", "histograms", "images", "nonfinite"]
    name: str = Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")
    limit: int = Field(20, ge=1, le=100)


class LoggedOut(Schema):
    seq: int
    time: datetime
    step: int
    value: Payload | str
    """A text, or a table, histogram or image as in its event."""


class LoggedList(Schema):
    values: list[LoggedOut]
    next: int | None


class LinesIn(Backwards):
    level: list[Literal["debug", "info", "warning", "error"]] = Field([], max_length=4)
    q: str = Field("", max_length=200, pattern=r"^[^\x00]*$")
    """Text in the message, case-insensitive."""
