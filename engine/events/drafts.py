"""Drafts: the text so far of the nodes that are being written, alongside the log and never in it.

    RUN_DIR/drafts/watched    touched by the process that ships the run while somebody watches
    RUN_DIR/drafts/NAME.json  the drafts of one process with a model, replaced as a whole

Invariants: nothing reads a draft back into a run, so drafts change no result; without a watcher
nothing is decoded or written; a process writes at most `MOST` drafts every `EVERY_SECONDS`; a
failure to write one costs that draft and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

FOLDER = "drafts"
WATCHED = "watched"
EVERY_SECONDS = 0.5
WATCH_SECONDS = 15.0
"""How long the file `watched` counts after it was touched."""
MOST = 16
"""Drafts of one process; of more nodes in flight, those that began last."""
TAIL_CHARACTERS = 4000
"""Characters of one draft: the last ones of a longer text."""


class Draft(msgspec.Struct, frozen=True):
    """A node that is being written."""

    tree: int
    node: int
    agent: str
    tokens: int
    """Number of tokens so far."""
    text: str
    """Text so far without special tokens, or its last `TAIL_CHARACTERS`."""


class DraftWriter:
    """Writes the drafts of one process, while somebody watches."""

    def __init__(self, run_dir: Path, name: str):
        """`name` identifies the process among all of the run."""
        self._folder = run_dir / FOLDER
        self._file = self._folder / f"{name}.json"
        self._next = 0.0

    def is_due(self) -> bool:
        """Returns whether somebody watches, and the last drafts are `EVERY_SECONDS` old."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + EVERY_SECONDS
        try:
            touched = (self._folder / WATCHED).stat().st_mtime
        except OSError:
            return False
        return time.time() - touched < WATCH_SECONDS

    def write(self, drafts: Sequence[Draft]) -> None:
        """Replaces the drafts of this process."""
        part = self._file.with_suffix(".part")
        with suppress(OSError):  # a full disk: the nodes are what counts
            part.write_bytes(msgspec.json.encode(drafts))
            part.replace(self._file)


class DraftReader:
    """Reads the drafts of all processes of a run."""

    def __init__(self, run_dir: Path):
        self._folder = run_dir / FOLDER
        self._seen: dict[str, int] = {}
        """Time at which each file was last written, in nanoseconds."""

    def watch(self) -> None:
        """Requests drafts for the next `WATCH_SECONDS`."""
        self._folder.mkdir(exist_ok=True)
        (self._folder / WATCHED).touch()

    def read(self) -> list[Draft] | None:
        """Returns all drafts, by tree and node; None if none has changed since the last call."""
        written = {}
        for file in self._folder.glob("*.json"):
            try:
                written[file.name] = file.stat().st_mtime_ns
            except FileNotFoundError:  # removed meanwhile
                continue
        if written == self._seen:
            return None
        self._seen = written
        drafts: list[Draft] = []
        for name in written:
            try:
                drafts += msgspec.json.decode((self._folder / name).read_bytes(), type=list[Draft])
            except (OSError, msgspec.DecodeError):
                continue  # the next one replaces it
        return sorted(drafts, key=lambda draft: (draft.tree, draft.node))

    def clear(self) -> None:
        """Removes all drafts; for a run whose engine does not run."""
        for file in (*self._folder.glob("*.json"), *self._folder.glob("*.part")):
            file.unlink(missing_ok=True)
        (self._folder / WATCHED).unlink(missing_ok=True)
        self._seen = {}
