"""Types of REST responses. Fields that a newer server adds are ignored."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class Workspace(msgspec.Struct, frozen=True):
    id: int
    name: str
    slug: str
    member_count: int


class Project(msgspec.Struct, frozen=True):
    id: int
    name: str
    workspace: int
    visibility: str


class Run(msgspec.Struct, frozen=True):
    id: str
    name: str
    number: int
    project: int
    seed: int
    created: datetime
    created_by: str
    head_seq: int
    outside: bool
    state: str
    stop_requested: bool
    step: int
    steps: int
    error: str
    result: dict[str, Any]
    config: dict[str, Any] = {}
    """Empty in lists."""

    @property
    def is_over(self) -> bool:
        return self.state in ("finished", "failed", "stopped")


class Upload(msgspec.Struct, frozen=True):
    """A file being uploaded; `offset` of its `size` bytes have arrived."""

    id: str
    name: str
    size: int
    offset: int
    sha256: str | None
    """Digest of the content, once the upload is finished."""


class UploadList(msgspec.Struct, frozen=True):
    uploads: list[Upload]


class Waiting(msgspec.Struct, frozen=True):
    """The place in a queue of a request that waits for its turn."""

    place: int
    waiting: int
    """Number of places in the queue."""
    detail: str


class DatasetVersion(msgspec.Struct, frozen=True):
    id: int
    number: int
    reference: str | None
    """Its name in a run's `problems.dataset`."""
    content_hash: str
    left_out: list[str]
    statistics: dict[str, Any]
    faulty: int | None
    """Problems whose reference fails; null until checked."""


class ModelVersion(msgspec.Struct, frozen=True):
    id: int
    number: int
    sha256: str
    parameters: int
    created: datetime
    parent: str | None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """What the server noticed about its files and accepted nevertheless."""
        return list(self.metadata.get("warnings") or [])


class Model(msgspec.Struct, frozen=True):
    id: int
    name: str
    project: int
    version_count: int
    aliases: dict[str, int]
    """Number of the version, by alias."""
    versions: list[ModelVersion]
    """The newest."""


class ModelImport(msgspec.Struct, frozen=True):
    """An import that a worker of the server does; `progress` is from 0 to 1."""

    id: int
    name: str
    state: str
    progress: float
    phase: str
    error: str
    model: int | None
    number: int | None
    """Number of the version of the model, once it is done."""

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed", "cancelled")


class Search(msgspec.Struct, frozen=True):
    """A search; `id` is that of its run, which stop, watch and pull take."""

    id: str
    name: str
    project: int
    problem: str
    state: str
    error: str
    created: datetime


class Answer(msgspec.Struct, frozen=True):
    """The program that a search chose; without a node, nothing was verified."""

    node: int | None
    agent: str
    program: str
    rule: str
    passed: int
    tests: int
    private_passed: bool | None
    ended: str
    nodes: int
    tokens: int
    seconds: float


class Event(msgspec.Struct, frozen=True, array_like=True):
    """An event as on the wire: [seq, milliseconds since 1970, kind, payload]."""

    seq: int
    milliseconds: int
    kind: str
    payload: dict[str, Any]


class Points(msgspec.Struct):
    """Points of one metric: columns of equal length."""

    step: list[int]
    time: list[float]
    """Seconds since the run's first event."""
    value: list[float]

    def extend(self, more: Points) -> None:
        for name in self.__struct_fields__:
            getattr(self, name).extend(getattr(more, name))


class PointPage(msgspec.Struct, frozen=True):
    points: Points
    next: int | None


class Export(msgspec.Struct, frozen=True):
    """A table as a file, written by a worker."""

    id: str
    project: int
    run: str | None
    table: str
    format: str
    state: str
    error: str
    rows: int
    size: int
    sha256: str

    @property
    def is_over(self) -> bool:
        return self.state in ("ready", "failed")


class IngestStatus(msgspec.Struct, frozen=True):
    """The server's response to the events of an external engine."""

    head_seq: int
    state: str
    stop_requested: bool


class FieldProblem(msgspec.Struct, frozen=True):
    path: str
    value: Any
    reason: str


class Problem(msgspec.Struct, frozen=True):
    """Problem details (RFC 9457)."""

    status: int
    detail: str
    problems: list[FieldProblem] = []
    expected_seq: int | None = None


class Refused(Exception):
    """The server's refusal; the message names each invalid field, its value and the reason."""

    def __init__(self, problem: Problem):
        self.problem = problem
        lines = (f"{one.path} = {one.value!r}: {one.reason}" for one in problem.problems)
        super().__init__("\n".join((f"{problem.status}: {problem.detail}", *lines)))
