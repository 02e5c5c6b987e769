"""Import of a whole run at once: its events go through a spool of a temporary folder.

Invariant: the session, and with it the run's id, follows from the content. So a command that is
repeated, after whatever cut it off, continues behind the last event that the server has, and an
import that is complete changes nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
import tempfile
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any

import msgspec

from webapp.client.client import Grove
from webapp.client.tracking import limits, room, sync, values
from webapp.client.tracking.records import LAST_SECOND, tags_of, whole_step
from webapp.client.tracking.sender import say
from webapp.client.tracking.spool import Header, Spool
from webapp.client.tracking.start import checked_id

_NAMESPACE = uuid.UUID("5a3c1b1e-9d0e-5c5f-8b0a-7f8f5d0a4c11")


@dataclass(frozen=True)
class Target:
    """Where an import goes: `project` by name or number, `entity` its workspace, `id` and `name` of
    the run; empty for the import's own."""

    project: str = ""
    entity: str = ""
    id: str = ""
    name: str = ""

    def key(self, digest: str) -> str:
        """Returns the id of the run of this content."""
        return self.id or f"import-{digest[:16]}"


def digest_of(file: BufferedReader) -> str:
    """Returns the SHA-256 of a file, as hex."""
    return hashlib.file_digest(file, "sha256").hexdigest()


def session_of(digest: str, key: str) -> uuid.UUID:
    """Returns the session of the import of this content as the run `key`."""
    return uuid.uuid5(_NAMESPACE, f"{digest} {key}")


def send_whole(
    grove: Grove, target: Target, digest: str, name: str, events: Iterable[Mapping[str, Any]]
) -> str:
    """Sends all events of a run, each stored once, and returns the run's id.

    Raises:
        InitRefused: the id is none. Refused, Undelivered, httpx.TransportError: as of a sender.
        OSError: the temporary folder has no room.
    """
    key = target.key(digest)
    header = Header(
        session=str(session_of(digest, checked_id(key))), key=key, project=target.project,
        entity=target.entity, name=values.text_of(" ".join((target.name or name).split()), 200),
        alerts_after=LAST_SECOND,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="grove-import-") as folder:
        spool = Spool.create(Path(folder), header, "import")
        try:
            for event in events:
                spool.append(msgspec.json.encode(event))
                if spool.problem:
                    raise spool.problem
            return sync.send(spool, grove)
        finally:
            spool.close()


@dataclass
class Finished:
    """A run of another tracker that has ended: rows of (time, step, values) in their order."""

    id: str
    name: str
    state: str
    """finished, failed or stopped."""
    rows: list[tuple[float, int, dict[str, Any]]]
    reason: str = ""
    """Why it failed, if that is known."""
    start: float = 0.0
    """Unix time of its start; 0 if only its rows say when it was."""
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    notes: str = ""

    def events(self) -> list[dict[str, Any]]:
        """Returns the events of the whole run, without their seq."""
        start = min([self.start or math.inf, *(at for at, _, _ in self.rows)])
        start = start if math.isfinite(start) else 0.0
        end = max([start, *(at for at, _, _ in self.rows)])
        described = {
            "config": room.Settings().admitted(values.plain(self.config)),
            "summary": room.Settings().admitted(values.plain(self.summary)),
            "tags": tags_of(self.tags), "notes": values.text_of(self.notes, limits.LONGEST_NOTES),
        }  # fmt: skip
        said = {name: value for name, value in described.items() if value}
        events = [_event(start, "run.state", {"state": "running"})]
        events += [_event(start, "run.described", {name: value}) for name, value in said.items()]
        names = room.Names()
        for at, step, row in self.rows:
            for part in values.parts(names.admitted(values.sorted_values(row))):
                if part:
                    events.append(_event(at, "metric.logged", {"step": whole_step(step), **part}))
        if names.left_out:
            say(f"{self.name or self.id}: {room.LEFT_OUT}")
        if self.state == "failed":
            cause = self.reason or "the tracker that it was imported from says so"
            events.append(_event(end, "error", {"message": values.text_of(cause, 2000)}))
        ended = {"state": self.state, "reason": self.reason}
        return [*events, _event(end, "run.state", ended)]


def send_finished(grove: Grove, target: Target, kind: str, run: Finished) -> str:
    """Sends a run that has ended, once, and returns in a sentence what it is. Raises as
    `send_whole`."""
    events = run.events()
    digest = hashlib.sha256(msgspec.json.encode(events)).hexdigest()
    key = re.sub(r"[^A-Za-z0-9_.:-]", "-", f"{kind}-{run.id}")[:64]
    target = dataclasses.replace(target, id=target.id or key)
    made = send_whole(grove, target, digest, run.name or run.id, events)
    return f"{run.name or run.id}: {len(run.rows)} rows, run {made}"


def _event(at: float, kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    at = at if 0 <= at <= LAST_SECOND else 0.0
    return {"time": at, "kind": kind, "tree": None, "node": None, "payload": payload}
