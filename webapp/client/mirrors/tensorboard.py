"""Mirror in TensorBoard's event files, in a folder of its own, written without its library.

Invariant: an event of the run is one record, which names its seq in `source_metadata`; a record
that was cut off by a kill is no record, so the last whole one says where to go on. Each process
writes a file of its own.
"""

from __future__ import annotations

import os
import socket
import time
from io import BufferedWriter
from pathlib import Path

from webapp.client.mirrors import Entry, Mirrored
from webapp.client.mirrors.entries import picture, samples, size_of, table_text
from webapp.client.protobuf import Message, field, packed
from webapp.client.record_files import RecordFile, framed

_WRITER = "grove "
_DOUBLE, _STRING = 2, 7
_SCALAR, _TENSOR, _BLOBS = 1, 2, 3
"""Classes of data, by which TensorBoard chooses how it samples them."""


class Tracker:
    """Files in `into`/NAME-ID."""

    def __init__(self, run: Mirrored):
        self.folder = Path(run.into) / f"{_file_name(run.name)}-{run.id[:8]}"
        self._config = run.config
        self._file: BufferedWriter | None = None

    def head(self) -> int:
        """Reads every file of the folder."""
        return max((_last(path) for path in self.folder.glob("*tfevents*")), default=0)

    def write(self, entries: list[Entry]) -> None:
        file = self._file = self._file or self._created()
        for entry in entries:
            file.write(framed(_record(entry, self._config)))
            self._config = {}
        file.flush()

    def end(self, state: str) -> None:
        if self._file:
            self._file.close()

    def _created(self) -> BufferedWriter:
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time():017.6f}.{socket.gethostname()}.{os.getpid()}"
        file = (self.folder / name).open("xb")
        file.write(framed(field(1, time.time()) + field(3, "brain.Event:2")))
        return file


def _last(path: Path) -> int:
    last = 0
    for raw in RecordFile(path).new():
        writer = Message(raw).message(10).text(1)
        if writer.startswith(_WRITER):
            last = max(last, int(writer.removeprefix(_WRITER)))
    return last


def _record(entry: Entry, config: dict) -> bytes:
    """Returns the record of an entry; `config` are settings that come with the first one."""
    values = [_scalar(name, number) for name, number in entry.numbers.items()]
    tables = {**entry.tables, **entry.trees}
    texts = {**entry.texts, **{name: table_text(one) for name, one in tables.items()}}
    if settings := {**config, **entry.config}:
        rows = [[name, str(value)] for name, value in settings.items()]
        texts["settings"] = table_text({"columns": ["setting", "value"], "rows": rows})
    values += [_text(name, text) for name, text in texts.items()]
    values += [_histogram(name, one) for name, one in entry.histograms.items()]
    values += [_image(name, picture(one)) for name, one in entry.images.items()]
    summary = b"".join(field(1, value) for value in values)
    source = field(10, field(1, f"{_WRITER}{entry.seq}"))
    return field(1, entry.time) + field(2, entry.step) + field(5, summary) + source


def _scalar(name: str, number: float) -> bytes:
    return _value(name, "scalars", _SCALAR, _tensor(_DOUBLE, packed(6, [number], "d")))


def _text(name: str, text: str) -> bytes:
    return _value(name, "text", _TENSOR, _tensor(_STRING, field(8, text)))


def _histogram(name: str, histogram: dict[str, list[float]]) -> bytes:
    bins = samples(histogram)
    content = packed(4, (number for one in bins for number in one), "d")
    return _value(name, "histograms", _TENSOR, _tensor(_DOUBLE, content, len(bins), 3))


def _image(name: str, content: bytes) -> bytes:
    """Width, height and the file, as `tf.summary.image` writes them."""
    strings = [*(str(side).encode() for side in size_of(content)), content]
    written = b"".join(field(8, one) for one in strings)
    return _value(name, "images", _BLOBS, _tensor(_STRING, written, len(strings)))


def _value(name: str, plugin: str, data: int, tensor: bytes) -> bytes:
    metadata = field(1, field(1, plugin)) + field(4, data)
    return field(1, name) + field(9, metadata) + field(8, tensor)


def _tensor(kind: int, content: bytes, *shape: int) -> bytes:
    dimensions = b"".join(field(2, field(1, size)) for size in shape)
    return field(1, kind) + field(2, dimensions) + content


def _file_name(name: str) -> str:
    kept = "".join(one if one.isalnum() or one in "-_." else "-" for one in name)
    return kept.strip(".-")[:60] or "run"
