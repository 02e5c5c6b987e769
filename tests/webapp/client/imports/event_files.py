"""Event files of TensorBoard as its writers make them, without their library."""

from __future__ import annotations

from pathlib import Path

from webapp.client.protobuf import field, packed
from webapp.client.record_files import framed

FLOAT, DOUBLE, STRING = 1, 2, 7


def event(step: int, *values: bytes, time: float = 100.0) -> bytes:
    """Returns a record with values of a step."""
    summary = b"".join(field(1, one) for one in values)
    return framed(field(1, time) + field(2, step) + field(5, summary))


def scalar(tag: str, number: float) -> bytes:
    """Returns a scalar as of TensorFlow 1 and PyTorch."""
    single = packed(2, [number], "f")
    fixed = bytes([2 << 3 | 5]) + single[2:]
    return field(1, tag) + fixed


def tensor(tag: str, plugin: str, content: bytes, kind: int = FLOAT) -> bytes:
    """Returns a value of a plugin, with a tensor's content."""
    return field(1, tag) + _of_plugin(plugin) + field(8, field(1, kind) + content)


def text(tag: str, *lines: str) -> bytes:
    strings = b"".join(field(8, line) for line in lines)
    return tensor(tag, "text", strings, STRING)


def histogram(tag: str, *buckets: tuple[float, float, float]) -> bytes:
    flat = [number for bucket in buckets for number in bucket]
    return tensor(tag, "histograms", packed(4, flat, "d"), DOUBLE)


def hparams(**numbers: float) -> bytes:
    entries = (field(1, name) + field(2, field(2, one)) for name, one in numbers.items())
    session = b"".join(field(1, entry) for entry in entries)
    metadata = field(1, field(1, "hparams") + field(2, field(3, session)))
    return field(1, "_hparams_/session_start_info") + field(9, metadata)


def _of_plugin(name: str) -> bytes:
    return field(9, field(1, field(1, name)))


def write(folder: Path, *records: bytes, name: str = "events.out.tfevents.1.host") -> Path:
    """Appends records to a file of a folder, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    with path.open("ab") as file:
        file.writelines(records)
    return path
