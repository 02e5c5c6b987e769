"""Reader of the files that W&B writes for its runs (`run-ID.wandb`): LevelDB's log format with
W&B's own messages.

Invariant: a record that is not complete ends the file; its writer was cut off, or is at work. One
whose checksum is wrong is refused.

Source: `wandb/sdk/internal/datastore.py` and `wandb_internal.proto` of W&B 0.31, by the numbers of
the fields.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from webapp.client.protobuf import Malformed, Message

HISTORY, SUMMARY, CONFIG, METRIC, RUN, EXIT = 2, 3, 5, 12, 17, 18
"""Fields of a record: rows, final values, settings, axes, what the run is, how it ended."""
_IDENTITY = b":W&B"
_START, _BLOCK, _HEAD = 7, 32_768, 7
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


class NoRun(ValueError):
    """Raised for a file that is not W&B's, or is damaged; names it and the record."""


def files(root: Path) -> list[Path]:
    """Returns the files of a directory and below, oldest first by the names of their folders."""
    return [root] if root.is_file() else sorted(root.rglob("run-*.wandb"))


def records(path: Path) -> Iterator[Message]:
    """Yields the messages of a file. Raises `NoRun`."""
    for number, raw in enumerate(_raw(path), 1):
        try:
            yield Message(raw)
        except Malformed as error:
            raise NoRun(f"{path}: record {number} is damaged: {error}") from None


def _raw(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        if file.read(_START)[:4] != _IDENTITY:
            raise NoRun(f"{path}: this is no file of W&B (run-ID.wandb)")
        parts = b""
        count = 1
        while True:
            left = _BLOCK - file.tell() % _BLOCK
            if left < _HEAD:
                file.seek(left, 1)
            head = file.read(_HEAD)
            if len(head) < _HEAD:
                return
            length, kind = int.from_bytes(head[4:6], "little"), head[6]
            part = file.read(length)
            if len(part) < length or kind not in (_FULL, _FIRST, _MIDDLE, _LAST):
                return
            if zlib.crc32(part, zlib.crc32(head[6:])) != int.from_bytes(head[:4], "little"):
                raise NoRun(f"{path}: record {count} is damaged: its checksum is wrong")
            parts = part if kind in (_FULL, _FIRST) else parts + part
            if kind in (_FULL, _LAST):
                count += 1
                yield parts


def step_of(history: Message) -> int:
    """Returns the step of a row."""
    return history.message(2).integer(1)


def values_of(items: Iterator[Message]) -> dict[str, Any]:
    """Returns the values of a row, of settings or of a summary; nested names are dictionaries."""
    values: dict[str, Any] = {}
    for item in items:
        *above, name = [item.text(1)] if item.text(1) else item.texts(2) or [""]
        place = values
        for one in above:
            inner = place.setdefault(one, {})
            place = inner if isinstance(inner, dict) else place
        place[name] = _value(item)
    return values


def _value(item: Message) -> Any:
    """Returns the value of an item: typed, as newer versions write rows, or as JSON."""
    if 4 in item:
        return bool(item.integer(4))
    if 5 in item:
        encoded = item.integer(5) & (2**64 - 1)
        return encoded >> 1 ^ -(encoded & 1)  # zigzag
    if 6 in item:
        return item.double(6)
    if 7 in item:
        return item.text(7)
    if 3 in item:
        return None
    text = item.text(8) or item.text(16)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
