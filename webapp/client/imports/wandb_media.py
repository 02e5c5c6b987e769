"""Tables, pictures, histograms and texts of a row of W&B, from the files next to the run's.

Invariant: a row names a file by its path below the folder `files` of its run. One that leads out of
that folder, by `..`, as an absolute path or by a link, is not read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from webapp.client.tracking.media import Histogram, Image, Table, Text

MOST_BYTES = 64 << 20
"""Bytes of a file that is read; of a table no more than 10,000 cells are kept."""
_FILES = "files"


class _NotThere(ValueError):
    """Raised for a file that is missing, too large, or not where it has to be."""


def kept(value: Any, run: Path) -> Any:
    """Returns a value as it is logged here; `run` is the file of the run. Of what cannot be kept
    a text says why."""
    if not isinstance(value, Mapping) or "_type" not in value:
        return value
    kind = value["_type"]
    make = _MAKERS.get(kind) if isinstance(kind, str) else None
    if make is None:
        return Text(f"not kept: {kind}")
    try:
        return make(value, run)
    except KeyError:  # of another version of W&B
        return Text(f"not kept: {kind}")
    except (OSError, TypeError, ValueError, RecursionError) as error:
        return Text(f"not kept: {kind}: {error}")


def _histogram(value: Mapping[str, Any], run: Path) -> Histogram:
    if "bins" not in value:
        raise ValueError("its bins are in a file")
    return Histogram(np_histogram=(value["values"], value["bins"]))


def _table(value: Mapping[str, Any], run: Path) -> Table:
    found = json.loads(_content(run, value))
    return Table(columns=found["columns"], data=found["data"])


def _image(value: Mapping[str, Any], run: Path) -> Image:
    return Image(_content(run, value), caption=value.get("caption"))


def _images(value: Mapping[str, Any], run: Path) -> list[Image]:
    names = value["filenames"]
    captions = value.get("captions") or []
    captions = captions if len(captions) == len(names) else [None] * len(names)
    return [
        Image(_content(run, {"path": name}), caption=caption)
        for name, caption in zip(names, captions, strict=True)
    ]


def _html(value: Mapping[str, Any], run: Path) -> Text:
    return Text(_content(run, value).decode("utf-8", "replace"))


def _content(run: Path, value: Mapping[str, Any]) -> bytes:
    name = value["path"]
    if not isinstance(name, str) or "\0" in name:
        raise _NotThere("its file has no name")
    folder = (run.parent / _FILES).resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        raise _NotThere(f"{name}: it is outside of the run's folder of files")
    if not path.is_file():
        raise _NotThere(f"{name}: there is no such file in {_FILES}")
    if path.stat().st_size > MOST_BYTES:
        raise _NotThere(f"{name}: it has more than {MOST_BYTES} bytes")
    return path.read_bytes()


_MAKERS = {
    "histogram": _histogram, "table-file": _table, "image-file": _image,
    "images/separated": _images, "html-file": _html,
}  # fmt: skip
"""By the type that W&B writes; those of a table that is partitioned or joined are not kept."""
