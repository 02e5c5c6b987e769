"""Reader of TensorBoard's event files.

Invariants: record n of a file never changes, so a number of records is a position.
A record that its writer has not finished is read later. Scalars, histograms, texts and HParams are
read; of images, sounds and other data a text says that they are not kept.

Source: the messages `Event`, `Summary`, `TensorProto` and `HParamsPluginData` of TensorBoard
2.21, by the numbers of their fields.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from webapp.client.protobuf import Malformed, Message, unpacked
from webapp.client.record_files import Damaged, RecordFile
from webapp.client.tracking.limits import MOST_BINS
from webapp.client.tracking.media import Histogram, Text

MARK = "tfevents"
"""Part of the name of every event file."""
_MOST_TEXTS = 16
_HPARAMS = "_hparams_/session_start_info"
_STRING, _HALF, _BFLOAT16 = 7, 19, 14
_CODES = {1: "f", 2: "d", 3: "i", 4: "B", 6: "b", 9: "q", 10: "?", _HALF: "e"}
"""`struct` codes of the types of tensors that are numbers."""
_VALUES = {1: (5, "f"), 2: (6, "d")}
"""Fields of floats and doubles that are not in a tensor's content."""


@dataclass
class Record:
    """What one record of a file says; nothing, of its version or a graph."""

    number: int
    """From 1."""
    time: float
    step: int
    values: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)


def directories(root: Path) -> list[Path]:
    """Returns the directories of event files below a directory: TensorBoard's runs."""
    return sorted({path.parent for path in root.rglob(f"*{MARK}*") if path.is_file()})


def files(directory: Path) -> list[Path]:
    """Returns the event files of a run, oldest first by their names."""
    return sorted(path for path in directory.glob(f"*{MARK}*") if path.is_file())


class EventFile:
    """One file, which is read further by each call of `records`."""

    def __init__(self, path: Path):
        self.path = path
        self._file = RecordFile(path)
        self._plugins: dict[str, str] = {}
        """Plugin of each tag, of which only the first value says it."""

    def records(self) -> Iterator[Record]:
        """Yields the records that were not yielded before. Raises `Damaged`."""
        for raw in self._file.new():
            try:
                record = self._record(raw)
            except (Malformed, OverflowError) as error:
                number = self._file.count
                raise Damaged(
                    f"{self.path}: record {number} is damaged ({error}); the {number - 1} before "
                    "it can be read"
                ) from None
            yield record

    def _record(self, raw: bytes) -> Record:
        event = Message(raw)
        record = Record(self._file.count, event.double(1), event.integer(2))
        for value in event.message(5).messages(1):
            self._add(record, value)
        return record

    def _add(self, record: Record, value: Message) -> None:
        tag, plugin = value.text(1), value.message(9).message(1)
        name = self._plugins.setdefault(tag, plugin.text(1)) or plugin.text(1)
        if name == "hparams":
            if tag == _HPARAMS:
                record.config.update(_settings(plugin.raw(2)))
        elif 2 in value:
            record.values[tag] = value.single(2)
        elif 5 in value:
            record.values[tag] = _old_histogram(value.message(5))
        elif 8 in value and name in _READERS:
            record.values[tag] = _READERS[name](value.message(8))
        else:
            record.values[tag] = Text(f"not kept: {name or _kind(value)}")


def _kind(value: Message) -> str:
    return "images" if 4 in value else "audio" if 6 in value else "data of no kind"


def _scalar(tensor: Message) -> Any:
    numbers = _numbers(tensor)
    return float(numbers[0]) if numbers else Text("not kept: a scalar of an unknown type")


def _numbers(tensor: Message) -> list[Any] | None:
    """Returns the numbers of a tensor, flattened; None of a type that holds none."""
    kind = tensor.integer(1)
    if kind in _VALUES and not tensor.raw(4):
        number, code = _VALUES[kind]
        return tensor.singles(number) if code == "f" else tensor.doubles(number)
    if kind == _BFLOAT16:
        halves = unpacked(tensor.raw(4), "H")
        return [struct.unpack("<f", struct.pack("<I", one << 16))[0] for one in halves]
    code = _CODES.get(kind)
    return unpacked(tensor.raw(4), code) if code and tensor.raw(4) else None


def _histogram(tensor: Message) -> Any:
    """Returns a histogram of the buckets (left, right, count)."""
    numbers = _numbers(tensor) or []
    return _binned(numbers[0::3], numbers[1::3], numbers[2::3])


def _old_histogram(histogram: Message) -> Any:
    """Returns a histogram of TensorFlow 1 and PyTorch: right edges, the last of which may be the
    largest float; the smallest and the largest value bound it."""
    limits, counts = histogram.doubles(6), histogram.doubles(7)
    edges = [histogram.double(1), *limits[:-1], histogram.double(2)]
    return _binned(edges[:-1], edges[1:], counts)


def _binned(lefts: list[float], rights: list[float], counts: list[float]) -> Any:
    """Returns a histogram, with neighbours joined if there are too many."""
    sizes = {len(lefts), len(rights), len(counts)}
    finite = all(math.isfinite(one) for one in (*lefts, *rights, *counts))
    if not counts or len(sizes) > 1 or not finite:
        return Text("not kept: an empty histogram, or one with numbers that are not finite")
    together = -(-len(counts) // MOST_BINS)
    starts = [*range(0, len(counts), together), len(counts)]
    joined = [float(sum(counts[first:last])) for first, last in pairwise(starts)]
    edges = accumulate([*(lefts[start] for start in starts[:-1]), rights[-1]], max)
    return Histogram(np_histogram=(joined, [float(edge) for edge in edges]))


def _texts(tensor: Message) -> Text:
    parts = tensor.texts(8)[:_MOST_TEXTS]
    return Text("\n\n".join(parts))


_READERS = {"scalars": _scalar, "histograms": _histogram, "text": _texts}


def _settings(content: bytes) -> dict[str, Any]:
    """Returns what `add_hparams` wrote: numbers, texts, flags; null of anything else."""
    read: dict[str, Any] = {}
    for entry in Message(content).message(3).messages(1):
        value = entry.message(2)
        if 2 in value:
            read[entry.text(1)] = value.double(2)
        elif 3 in value:
            read[entry.text(1)] = value.text(3)
        else:
            read[entry.text(1)] = bool(value.integer(4)) if 4 in value else None
    return read
