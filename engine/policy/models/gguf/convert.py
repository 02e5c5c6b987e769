"""Conversion of a GGUF file to a directory in Hugging Face layout.

Invariant: the directory is complete or does not exist. It is written under another name next to the
target and renamed; everything that the header alone can show to be wrong is refused before.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from engine.policy.models.gguf.architectures import plan_of
from engine.policy.models.gguf.architectures.plan import Plan
from engine.policy.models.gguf.chat_template import read_template
from engine.policy.models.gguf.dequantise import Dtype, expected_dtype
from engine.policy.models.gguf.file import GgufFile, read_file
from engine.policy.models.gguf.lineage import lineage
from engine.policy.models.gguf.tokenizer import TokenizerFiles, read_tokenizer
from engine.policy.models.gguf.tokenizer.vocabulary import Vocabulary
from engine.policy.models.gguf.weights import Written, write_weights
from engine.policy.models.load import ModelError

_DTYPES = {Dtype.F32: "float32", Dtype.F16: "float16", Dtype.BF16: "bfloat16"}
_ROOM_BYTES = 100_000_000
"""Of everything but the weights."""

Progress = Callable[[float], None]


def convert(source: Path, target: Path, progress: Progress | None = None) -> None:
    """Writes the model of the GGUF file `source` into the new directory `target`: config.json,
    tokenizer.json, chat_template.jinja, weights as safetensors (`dequantise` says in which dtype),
    and its origin in lineage.json. `progress` is called with the share that is done, from 0 to 1.

    Raises:
        ModelError: the file is damaged or not supported, `target` exists or cannot be written;
            names file, field or tensor, value and remedy.
    """
    if not source.is_file():  # a pipe would be waited for
        raise ModelError(f"{source}: is no file; name a GGUF file")
    if target.exists():
        raise ModelError(f"{target}: exists; name a new directory, or delete it")
    try:
        with source.open("rb") as stream:
            _convert(read_file(source, stream), target, progress or (lambda _: None))
    except OSError as error:
        raise ModelError(f"{error.filename or source}: {error.strerror or error}") from error


def _convert(file: GgufFile, target: Path, progress: Progress) -> None:
    plan = plan_of(file)
    tokenizer = read_tokenizer(file.metadata, plan.config["max_position_embeddings"])
    template, origin = read_template(file.metadata, tokenizer.vocabulary)
    _require_room(plan, target)
    report = _Bytes(file, progress)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Not by mkdtemp: its directories are closed to other users of a shared directory of models.
    folder = target.with_name(f".{target.name}.{uuid4().hex}")
    folder.mkdir()
    try:
        written = write_weights(file, plan.sources, folder, report)
        _write_settings(folder, plan, tokenizer, written)
        (folder / "chat_template.jinja").write_text(template, "utf-8")
        _write_json(folder / "lineage.json", lineage(file, origin, report))
        _flush(folder)
        folder.rename(target)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    progress(1.0)


class _Bytes:
    """Progress of a conversion, in bytes: each is read for its tensor and for the digest."""

    def __init__(self, file: GgufFile, progress: Progress):
        self._all = 2 * file.path.stat().st_size
        self._read, self._progress = 0, progress

    def __call__(self, count: int) -> None:
        self._read += count
        self._progress(min(self._read / self._all, 0.999))


def _require_room(plan: Plan, target: Path) -> None:
    existing = next(one for one in (target.absolute(), *target.absolute().parents) if one.exists())
    needed = _ROOM_BYTES + sum(
        one.info.rows * one.info.columns * expected_dtype(one.info).bytes for one in plan.sources
    )
    free = shutil.disk_usage(existing).free
    if free < needed:
        what = f"needs {needed:,} bytes of disk, {free:,} are free"
        raise ModelError(f"{target}: {what}; make room, or name a directory elsewhere")


def _write_settings(folder: Path, plan: Plan, tokenizer: TokenizerFiles, written: Written) -> None:
    ids = _special_ids(tokenizer.vocabulary)
    config = {**plan.config, **ids, "dtype": _dtype(plan, written), "use_cache": True}
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", ids)
    _write_json(folder / "tokenizer_config.json", tokenizer.config)
    tokenizer.tokenizer.save(str(folder / "tokenizer.json"))


def _special_ids(vocabulary: Vocabulary) -> dict[str, Any]:
    ends = list(vocabulary.ends)
    ids = {
        "bos_token_id": vocabulary.bos,
        "eos_token_id": ends if len(ends) > 1 else ends[0],
        "pad_token_id": vocabulary.pad,
    }
    return {name: value for name, value in ids.items() if value is not None}


def _dtype(plan: Plan, written: Written) -> str:
    """Returns the dtype that the model is loaded in where none is named: that of its matrices, F32
    if they differ."""
    if plan.float16_overflows and written.matrices == {Dtype.F16}:
        return "bfloat16"
    return _DTYPES[next(iter(written.matrices))] if len(written.matrices) == 1 else "float32"


def _write_json(file: Path, value: dict[str, Any]) -> None:
    file.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _flush(folder: Path) -> None:
    """Waits until the files are on the disk: after a power failure the name is not there before its
    content."""
    for path in folder.iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
