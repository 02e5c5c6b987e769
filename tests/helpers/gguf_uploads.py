"""Uploads of GGUF files: headers alone, for tests that convert none, and tiny models."""

from __future__ import annotations

import struct
from io import BytesIO
from pathlib import Path

from tests.helpers.builders import Cast
from webapp.accounts.models import User
from webapp.artifacts.models import Upload
from webapp.artifacts.services import append, begin, finish

PADDING = bytes(64)


def a_header(version: int = 3, tensors: int = 1, magic: bytes = b"GGUF") -> bytes:
    """The first bytes of a GGUF file, as the format defines them; what follows is zeros."""
    return struct.pack("<4sIQQ", magic, version, tensors, 0) + PADDING


def an_upload(cast: Cast, content: bytes, name: str = "tiny.gguf", user: User | None = None):
    """A finished upload of Bob's."""
    upload = begin(cast.project, user or cast.bob, Upload.Kind.MODEL, name, len(content))
    return finish(append(upload, 0, BytesIO(content)))


def a_tiny_gguf(path: Path, seed: int = 0) -> Path:
    """Writes a whole model of two layers, quantised to 4 bits, with the `gguf` package."""
    from tests.engine.policy.gguf.tiny import content_of, tiny_model
    from tests.engine.policy.gguf.vocabularies import byte_level

    vocabulary = byte_level()
    model = tiny_model("llama", len(vocabulary["tokenizer.ggml.tokens"]), seed)
    return content_of(model, "llama", "Q4_1", vocabulary).write(path)
