"""Pictures that a program logs, as the bytes of a small PNG or JPEG file.

Invariant: what is returned is within `limits.MOST_IMAGE_BYTES`; a larger picture is made smaller,
which a file that is given whole is not. Nothing here needs a library: PIL, numpy, torch and
matplotlib are used where the program has them.
"""

from __future__ import annotations

import os
import struct
import sys
import zlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from webapp.client.tracking.limits import MOST_IMAGE_BYTES

MAGIC = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xff\xd8\xff"}
"""First bytes of a file of each format."""
MOST_SIDE = 1024
"""Pixels of the longer side of a picture that is encoded here."""
_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}
"""PNG's number of a colour type by channels: grey, RGB, RGBA."""


def encoded(value: Any) -> tuple[str, bytes]:
    """Returns format and bytes of a picture: a file or its bytes, a figure of matplotlib, a picture
    of PIL, or an array, rows of pixels with 1, 3 or 4 channels (of torch: channels first), from 0
    to 255, or of floats from 0 to 1.

    Raises:
        ValueError: it is none of these, or too large; says why. OSError: the file cannot be read.
    """
    if isinstance(value, str | os.PathLike):
        path = Path(value)
        if path.stat().st_size > MOST_IMAGE_BYTES:
            raise ValueError(_too_large(path.stat().st_size))
        return _whole(path.read_bytes())
    if isinstance(value, bytes | bytearray):
        return _whole(bytes(value))
    if hasattr(value, "savefig"):
        buffer = BytesIO()
        value.savefig(buffer, format="png", dpi=72)
        return _whole(buffer.getvalue())
    if hasattr(value, "save") and hasattr(value, "thumbnail"):
        return _of_pil(value)
    return _of_array(value)


def _too_large(size: int) -> str:
    return f"the file has {size} bytes, {MOST_IMAGE_BYTES} at most: give it as a picture of PIL"


def _whole(content: bytes) -> tuple[str, bytes]:
    kinds = [kind for kind, start in MAGIC.items() if content.startswith(start)]
    if not kinds:
        raise ValueError("the file is neither PNG nor JPEG")
    if len(content) > MOST_IMAGE_BYTES:
        raise ValueError(_too_large(len(content)))
    return kinds[0], content


def _of_pil(picture: Any) -> tuple[str, bytes]:
    side = MOST_SIDE
    while side:
        small = picture.copy()
        small.thumbnail((side, side))
        for kind, mode in (("png", small.mode), ("jpeg", "RGB")):
            plain = small.convert(mode if mode in ("L", "RGB", "RGBA") else "RGB")
            buffer = BytesIO()
            plain.save(buffer, format=kind)
            if buffer.tell() <= MOST_IMAGE_BYTES:
                return kind, buffer.getvalue()
        side //= 2
    raise ValueError("it cannot be made small enough")


def _of_array(value: Any) -> tuple[str, bytes]:
    rows = _rows(value)
    while True:
        content = _png(rows)
        if len(content) <= MOST_IMAGE_BYTES:
            return "png", content
        rows = [row[::2] for row in rows[::2]]


def _rows(value: Any) -> list[list[tuple[int, ...]]]:
    """Returns rows of pixels of equal numbers of channels, at most `MOST_SIDE` each way."""
    if hasattr(value, "detach"):  # of torch: channels, height, width
        value = value.detach().cpu().float()
        if len(value.shape) == 3:
            value = value.permute(1, 2, 0)
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(value, "__array__"):
        value = numpy.asarray(value)
    shape = getattr(value, "shape", None)
    if shape is not None:
        if len(shape) not in (2, 3):
            raise ValueError(f"an array of shape {tuple(shape)}: give rows, columns and channels")
        stride = max(1, -(-max(shape[:2]) // MOST_SIDE))
        value = value[::stride, ::stride].tolist()
    if not isinstance(value, Sequence):
        raise ValueError(f"{type(value).__name__} is no picture: give one of PIL, or an array")
    rows = [[_channels(pixel) for pixel in row] for row in value]
    width = len(rows[0]) if rows else 0
    counts = {len(pixel) for row in rows for pixel in row}
    if not width or any(len(row) != width for row in rows) or len(counts) != 1:
        raise ValueError("give rows of the same number of pixels, with the same channels")
    if counts - _COLOUR_TYPES.keys():
        raise ValueError(f"{counts.pop()} channels: give 1, 3 or 4")
    return _bytes_of(rows)


def _channels(pixel: Any) -> tuple[Any, ...]:
    return tuple(pixel) if isinstance(pixel, Sequence) else (pixel,)


def _bytes_of(rows: list[list[tuple[Any, ...]]]) -> list[list[tuple[int, ...]]]:
    """Returns whole numbers from 0 to 255; floats that are all from 0 to 1 are scaled."""
    values = [one for row in rows for pixel in row for one in pixel]
    if not all(isinstance(one, int | float) and one == one for one in values):
        raise ValueError("a value of it is no number")
    is_share = any(isinstance(one, float) for one in values) and max(values) <= 1
    scale = 255 if is_share else 1
    return [
        [tuple(int(min(255, max(0, round(one * scale)))) for one in pixel) for pixel in row]
        for row in rows
    ]


def _png(rows: list[list[tuple[int, ...]]]) -> bytes:
    """Returns a PNG file (ISO/IEC 15948): one chunk of data, rows without a filter."""
    height, width, channels = len(rows), len(rows[0]), len(rows[0][0])
    raw = b"".join(b"\0" + bytes(one for pixel in row for one in pixel) for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(raw, 6)), (b"IEND", b""))
    return MAGIC["png"] + b"".join(_chunk(name, body) for name, body in parts)


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
