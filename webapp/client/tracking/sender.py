"""Sender of a spool: attaches its process to the run and sends its lines, each stored once.

Invariants: the server's answer is the only cursor: it says how many lines of this process it has,
and line n is the event of seq `base` + n. A line that the server refuses by itself is replaced by a
log line that says why, so that no line blocks the ones behind it; it stays in the spool.

Waits: of the thread for new lines, `PAUSE_SECONDS`, and after a failure 1 to `LONGEST_PAUSE`
seconds, doubling, at random; a request has `REQUEST_SECONDS`. Of the end of a run for its last
lines, `FINISH_SECONDS` without progress.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import re
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import msgspec

from webapp.client.client import Grove
from webapp.client.pushing import BATCH_BYTES, BATCH_LINES
from webapp.client.tracking.spool import Position, Spool
from webapp.client.types import IngestStatus, Project, Refused

PAUSE_SECONDS = 0.5
LONGEST_PAUSE = 60.0
REQUEST_SECONDS = 20.0
HEARTBEAT_SECONDS = 15.0
FINISH_SECONDS = 30.0
"""How long the end of a run waits for progress."""
FAILING_SECONDS = 5.0
"""How long it waits if the newest attempt has failed."""
_CLAIMED = re.compile(r"events\.(\d+)(\.|$)")
_PASSING = (408, 429, 500, 502, 503, 504)
"""Statuses of a server that may answer later."""


class Attached(msgspec.Struct, frozen=True):
    """The server's answer to a process that attaches itself."""

    run: dict[str, Any]
    created: bool
    base: int
    lines: int


class Undelivered(Exception):
    """Raised when lines cannot be sent now; the message says why."""


class Sender:
    """Sends one spool over one client. Not thread-safe: one thread at a time uses it."""

    def __init__(self, spool: Spool, grove: Grove):
        self.spool, self.grove = spool, grove
        self.attached: Attached | None = None
        self.status: IngestStatus | None = None
        self.position = Position()
        self._project: int | None = None
        self._sent_at = 0.0

    @property
    def run_id(self) -> str:
        assert self.attached
        return self.attached.run["id"]

    @property
    def is_complete(self) -> bool:
        """Whether the server has every line that was logged so far."""
        return self.attached is not None and self.position.lines >= self.spool.lines

    def attach(self) -> Attached:
        """Attaches the process. Raises `Refused`, `httpx.TransportError`."""
        header = self.spool.header
        if self._project is None:
            self._project = project_of(self.grove, header.project, header.entity)
        body: dict[str, Any] = {
            "project": self._project, "id": header.key, "session": header.session,
            "name": header.name, "group": header.group, "resume": header.resume,
            "host": header.host, "lines": self.spool.lines,
        }  # fmt: skip
        if header.alerts_after:
            body["alerts_after"] = header.alerts_after
        self.attached = self.grove.ask(
            Attached, "POST", "/runs/tracked", json=body, timeout=REQUEST_SECONDS
        )
        if self.position.at > self.attached.lines + 1:  # a database restored from a backup
            self.position = Position()
        self.position.lines = self.attached.lines
        return self.attached

    def send_all(self) -> None:
        """Sends every line that is there.

        Raises:
            Refused: the server does not accept them. httpx.TransportError: it is unreachable.
        """
        attached = self.attached or self.attach()
        for _ in range(3):  # once more after another process wrote, or the run ended
            try:
                self._send_all(attached)
                return
            except Refused as refusal:
                if refusal.problem.status != 409:
                    raise
                attached = self.attach()
        self._send_all(attached)

    def heartbeat(self) -> None:
        """Reports that the process is alive, if it has not sent anything for a while."""
        if self.attached and time.monotonic() - self._sent_at > HEARTBEAT_SECONDS:
            self.report()

    def report(self) -> None:
        """Reports that the process is alive. Raises as `send_all`."""
        self._send([])

    def _send_all(self, attached: Attached) -> None:
        while True:
            before = dataclasses.replace(self.position)
            lines = self.spool.read(self.position, BATCH_LINES, BATCH_BYTES)
            if not lines:
                return
            try:
                self._send_batch(attached.base + before.lines, lines)
            except BaseException:
                self.position = before
                raise

    def _send_batch(self, after: int, lines: list[bytes]) -> None:
        """Sends lines, the first of which is the event after `after`."""
        events = [b'{"seq":%d,%s' % (after + n, line[1:]) for n, line in enumerate(lines, 1)]
        for _ in range(len(events) + 1):
            try:
                self._send(events)
                return
            except Refused as refusal:
                index = _claimed(refusal)
                if index is None or index >= len(events):
                    raise
                events[index] = _replacement(after + index + 1, lines[index], refusal)

    def _send(self, events: list[bytes]) -> None:
        body = b'{"session":"%s","events":[%s]}' % (
            self.spool.header.session.encode(),
            b",".join(events),
        )
        self.status = self.grove.ask(
            IngestStatus, "POST", f"/runs/{self.run_id}/events", content=body,
            headers={"Content-Type": "application/json"}, timeout=REQUEST_SECONDS,
        )  # fmt: skip
        self._sent_at = time.monotonic()


def _claimed(refusal: Refused) -> int | None:
    """Returns the index of the event that a refusal is about; None if it is about all."""
    if refusal.problem.status not in (400, 422):
        return None
    for one in refusal.problem.problems:
        if found := _CLAIMED.match(one.path):
            return int(found[1])
    return None


def _replacement(seq: int, line: bytes, refusal: Refused) -> bytes:
    event = msgspec.json.decode(line)
    what = str(refusal).replace("\n", " ")[:1000]
    message = f"grove: a {event['kind']} event is kept in the spool alone: {what}"
    payload = {"level": "error", "message": message}
    return msgspec.json.encode(
        {"seq": seq, "time": event["time"], "kind": "log.line", "tree": None, "node": None,
         "payload": payload}
    )  # fmt: skip


def project_of(grove: Grove, name: str, entity: str) -> int:
    """Returns the number of the project of this name or number; of the only one without a name.

    Raises:
        Undelivered: the token sees no such project, or several.
    """
    projects = list(grove.projects())
    if entity:
        spaces = {one.id for one in grove.workspaces() if entity in (one.slug, one.name)}
        projects = [one for one in projects if one.workspace in spaces]
    matching = [one for one in projects if not name or name in (one.name, str(one.id))]
    if len(matching) == 1:
        return matching[0].id
    shown = ", ".join(_shown(one) for one in projects[:10]) or "none"
    what = f"project = {name!r}" if name else "project: none is given"
    where = f" in {entity!r}" if entity else ""
    remedy = "give one, by name or number, and its workspace as entity if two have that name"
    raise Undelivered(f"{what}: this token sees {shown}{where}; {remedy}")


def _shown(project: Project) -> str:
    return f"{project.name} ({project.id})"


class Background:
    """Thread that sends a spool while its program runs, and makes its lines survive a crash."""

    def __init__(self, sender: Sender, warn: Callable[[str], None], changed: Callable[[], None]):
        """`warn` is given each new reason why nothing is sent; `changed` is called after each
        answer of the server."""
        self.sender, self._warn, self._changed = sender, warn, changed
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._given_up = threading.Event()
        self._reason = ""
        self._thread = threading.Thread(target=self._run, name="grove-sender", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def reason(self) -> str:
        """Why the newest attempt failed; empty if it did not."""
        return self._reason

    def drain(self) -> bool:
        """Ends the thread once everything is sent, or nothing was for `FINISH_SECONDS`, of a server
        that does not answer `FAILING_SECONDS`; returns whether everything is."""
        self._ended.set()
        self._wake.set()
        done, since = self.sender.position.lines, time.monotonic()
        while self._thread.is_alive():
            self._thread.join(0.05)
            now = time.monotonic()
            if self.sender.position.lines > done:
                done, since = self.sender.position.lines, now
            if now - since > (FAILING_SECONDS if self._reason else FINISH_SECONDS):
                break
        self._given_up.set()
        self._wake.set()
        return self.sender.is_complete and not self._thread.is_alive()

    def _run(self) -> None:
        failures = 0
        while not self._given_up.is_set():
            is_last = self._ended.is_set()
            self.sender.spool.sync()
            if self._attempt():
                failures = 0
                if is_last and self.sender.is_complete:
                    return
                pause = 0.0 if is_last else PAUSE_SECONDS
            else:
                failures += 1
                most = min(LONGEST_PAUSE, 2.0**failures)
                pause = 1.0 if is_last else random.uniform(most / 2, most)  # nosec B311
            if self._wake.wait(pause):
                self._wake.clear()

    def _attempt(self) -> bool:
        try:
            self.sender.send_all()
            self.sender.heartbeat()
        except (Refused, Undelivered, httpx.HTTPError, OSError, ValueError) as error:
            self._report(reason_of(error))
            return False
        self._report("")
        self._changed()
        return True

    def _report(self, reason: str) -> None:
        before, self._reason = self._reason, reason
        if reason and reason != before:
            self._warn(reason)


def reason_of(error: Exception) -> str:
    """Returns in one sentence why lines were not sent."""
    if isinstance(error, Refused):
        kind = "the server is not ready" if error.problem.status in _PASSING else "refused"
        return f"{kind}: {error}"
    if isinstance(error, httpx.HTTPError):
        return f"the server cannot be reached: {error or type(error).__name__}"
    return str(error)


def say(text: str) -> None:
    """Prints a message for the program's user, on standard error."""
    with contextlib.suppress(OSError, ValueError):  # closed
        print(f"grove: {text}", file=sys.stderr, flush=True)
