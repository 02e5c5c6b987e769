"""Upload of a growing log, resumed after the server's last event.

Invariant: the server's `head_seq` is the only cursor. Line n of `events.jsonl` is the event of seq
n, so after any interruption sending continues with the line after `head_seq`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from webapp.client.client import Grove
from webapp.client.types import Event, IngestStatus

FILE_NAME = "events.jsonl"
BATCH_LINES = 5000
BATCH_BYTES = 2_000_000
POLL_SECONDS = 0.5
HEARTBEAT_SECONDS = 60.0
"""Interval of signs of life to the server while the log does not grow."""
_ENDED = ("finished", "failed", "stopped")


def log_path(directory: Path) -> Path:
    """Returns the log of a run's directory.

    Raises:
        FileNotFoundError: the directory has no log.
    """
    log = directory / FILE_NAME
    if not log.is_file():
        raise FileNotFoundError(f"{directory} contains no {FILE_NAME}: give the directory of a run")
    return log


def push(grove: Grove, run_id: str, directory: Path, *, follow: bool) -> IngestStatus:
    """Sends the log's lines; with `follow`, also new ones until the log records the run's end.

    Raises:
        Refused: the server does not accept them. OSError: there is no log.
    """
    log = log_path(directory)
    status, sent_at = grove.send(run_id, []), time.monotonic()
    while True:
        for batch in batches(_lines(log, status.head_seq)):
            status, sent_at = grove.send(run_id, batch), time.monotonic()
        if not follow or status.state in _ENDED:
            return status
        time.sleep(POLL_SECONDS)
        if time.monotonic() - sent_at > HEARTBEAT_SECONDS:
            status, sent_at = grove.send(run_id, []), time.monotonic()


def last_seq(file: Path) -> int:
    """Returns the seq of the last event in a pulled file; 0 if it has none. Cuts off the beginning
    of a line that a pull which was killed left at its end, even if only the line end is missing.

    Raises:
        ValueError: a line is no event; names it.
    """
    if not file.is_file():
        return 0
    last, end = 0, 0
    with file.open("r+b") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                lines.truncate(end)
                break
            try:
                last = msgspec.json.decode(line, type=Event).seq
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ValueError(
                    f"{file}, line {number}: {error}: it is no event; pull into another file"
                ) from None
            end += len(line)
    return last


def batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yields lines in batches of a size that the server accepts."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        if batch and (len(batch) == BATCH_LINES or size + len(line) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    if batch:
        yield batch


def _lines(log: Path, sent: int) -> Iterator[bytes]:
    with log.open("rb") as file:
        for line in islice(file, sent, None):
            if not line.endswith(b"\n"):
                return  # still being written
            yield line.rstrip(b"\n")
