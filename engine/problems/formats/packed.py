"""Packed tests of LiveCodeBench: base64 of zlib of a pickle of one text.

Invariant: nothing is unpickled. The pickle is parsed into its opcodes, which runs nothing, and
accepted only if it consists of one text and the opcodes that frame it.
"""

from __future__ import annotations

import base64
import binascii
import pickletools  # nosec B403
import zlib

from engine.problems.formats.fields import RowError

MAX_BYTES = 1 << 30
_TEXTS = frozenset({"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"})
_FRAMES = frozenset({"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"})


def text_of(field: str, packed: str) -> str:
    """Returns the unpacked text.

    Raises:
        RowError: the value is packed otherwise, is larger than MAX_BYTES, or its pickle holds
            anything but one text.
    """
    try:
        compressed = base64.b64decode("".join(packed.split()), validate=True)
        stream = zlib.decompressobj()
        data = stream.decompress(compressed, MAX_BYTES)
    except (binascii.Error, zlib.error, ValueError) as error:
        remedy = f"is neither JSON nor base64 of zlib: {error}"
        raise RowError(field, packed, remedy) from None
    if stream.unconsumed_tail or not stream.eof:
        raise RowError(field, packed, f"is cut off, or larger than {MAX_BYTES >> 20} MiB")
    if data.lstrip()[:1] == b"[":
        return data.decode("utf-8", "replace")
    return _pickled_text(field, data)


def _pickled_text(field: str, data: bytes) -> str:
    texts: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in _TEXTS:
                texts.append(str(argument))
            elif opcode.name not in _FRAMES:
                remedy = "its pickle would make something; only one text is read, nothing is run"
                raise RowError(field, opcode.name, remedy)
    except RowError:
        raise
    except (ValueError, UnicodeDecodeError, IndexError) as error:
        raise RowError(field, data[:40], f"is no pickle of a text: {error}") from None
    if len(texts) != 1:
        raise RowError(field, f"{len(texts)} texts", "its pickle must hold one text")
    return texts[0]
