"""Layout of a model's files (Hugging Face), and checks that they belong together.

Invariants: only listed names are accepted, so no name leads out of a folder and no file is code;
weights are safetensors by content; the engine can load what passes. Files are given as
`ModelFile`s: the checks do not distinguish a folder from the artifact store.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from webapp.registry.model_files.chat_templates import check_chat_templates
from webapp.registry.model_files.safetensors import FILE_NAME, Tensor, WeightsError, read_tensors
from webapp.registry.model_files.settings_files import (
    check_config,
    check_free_settings,
    check_index,
    check_text,
    check_tokenizer,
    check_tokenizer_config,
    check_tokens,
)

CONFIG, TOKENIZER, TOKENIZER_CONFIG = "config.json", "tokenizer.json", "tokenizer_config.json"
TEMPLATE = "chat_template.jinja"
INDEX = "model.safetensors.index.json"
REQUIRED = (CONFIG, TOKENIZER, TOKENIZER_CONFIG)
_SHARD = re.compile(r"model-([0-9]{5})-of-([0-9]{5})\.safetensors")
_SETTINGS = {"generation_config.json", "special_tokens_map.json", "lineage.json"}
_TOKENS = {"added_tokens.json", "vocab.json"}
_TEXTS = {"merges.txt", "README.md", "LICENSE", "LICENSE.txt", "NOTICE", TEMPLATE}
_NAMES = {FILE_NAME, INDEX, *REQUIRED, *_SETTINGS, *_TOKENS, *_TEXTS}
MOST_FILES = 600
_GGUF = ".gguf"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model."""

    name: str
    size: int
    """Bytes."""
    open: Callable[[], BinaryIO]


@dataclass(frozen=True, slots=True)
class DigestedFile:
    """A file whose content is known."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Folder:
    """Contents of a directory that the engine wrote, not a user's."""

    sha256: str
    parameters: int
    files: tuple[DigestedFile, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Properties of a complete, checked model."""

    architecture: str
    parameters: int
    weights: tuple[str, ...]
    """Names of its weight files, in order."""


def is_weights(name: str) -> bool:
    """Returns whether a file of this name holds weights."""
    return name == FILE_NAME or _SHARD.fullmatch(name) is not None


def is_gguf(name: str) -> bool:
    """Returns whether a file of this name is taken for a GGUF file, which is a whole model and no
    part of this layout."""
    return name.lower().endswith(_GGUF)


def is_of_a_model(name: str) -> bool:
    """Returns whether a model may have a file of this name."""
    return name in _NAMES or _SHARD.fullmatch(name) is not None


def refuse_name(name: str) -> None:
    """Raises `WeightsError` unless a model may have a file of this name."""
    if is_of_a_model(name):
        return
    shown = name if name.isprintable() and len(name) <= 100 else ascii(name[:100])
    if name.endswith((".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".h5", ".msgpack")):
        raise WeightsError(shown, "weights are accepted as safetensors only", "save it as such")
    if name.endswith(".py"):
        raise WeightsError(shown, "code of a model is never run", "leave it out")
    names = ", ".join(sorted(_NAMES))
    what = "is no file of a model in Hugging Face layout"
    remedy = f"leave it out; accepted are {names} and model-00001-of-0000N.safetensors"
    raise WeightsError(shown, what, remedy)


def check_model(files: Sequence[ModelFile]) -> Layout:
    """Checks all files of a model, each alone and against the others.

    Raises:
        WeightsError: the first fault, with its file and the remedy.
    """
    by_name = {file.name: file for file in files}
    refuse_names([file.name for file in files])
    tensors = {name: _read(by_name[name]) for name in sorted(by_name) if is_weights(name)}
    if INDEX in by_name:
        check_index(by_name[INDEX], {name: set(held) for name, held in tensors.items()})
    merged = _merged(tensors)
    if not merged:
        raise WeightsError(next(iter(tensors)), "holds no tensor", "save the model again")
    config = check_config(by_name[CONFIG])
    check_tokenizer(by_name[TOKENIZER], config.vocabulary)
    check_tokenizer_config(by_name[TOKENIZER_CONFIG], has_template=TEMPLATE in by_name)
    check_chat_templates(by_name[TOKENIZER_CONFIG], by_name.get(TEMPLATE))
    for name in _SETTINGS & by_name.keys():
        check_free_settings(by_name[name])
    for name in _TOKENS & by_name.keys():
        check_tokens(by_name[name])
    for name in _TEXTS & by_name.keys():
        check_text(by_name[name])
    parameters = sum(tensor.parameters for tensor in merged.values())
    return Layout(config.architecture, parameters, tuple(tensors))


def files_of(folder: Path) -> list[ModelFile]:
    """Returns the files of a local folder that an operator names.

    Raises:
        WeightsError: it is no folder, or contains something other than plain files.
    """
    if not folder.is_dir():
        raise WeightsError(str(folder), "is no folder", "name one in Hugging Face layout")
    files = []
    for path in sorted(folder.iterdir()):
        if not path.is_file():
            raise WeightsError(str(path), "is no plain file", "leave it out")
        files.append(ModelFile(path.name, path.stat().st_size, lambda path=path: path.open("rb")))
    return files


def inspect(directory: Path) -> Folder:
    """Returns digests and number of parameters of a directory that the engine wrote.

    Raises:
        WeightsError: it holds no weights, or an incomplete safetensors file.
    """
    inside = sorted(directory.iterdir()) if directory.is_dir() else []
    return inspect_with_digests(
        directory, {path.name: _sha256(path) for path in inside if path.is_file()}
    )


def inspect_with_digests(directory: Path, sha256: Mapping[str, str]) -> Folder:
    """Returns the same as `inspect`, with the digests of its files, by name, given; raises as
    `inspect`."""
    plain = [directory / name for name in sha256]
    if not any(is_weights(path.name) for path in plain):
        what = "No such file or directory"
        raise WeightsError(str(directory / FILE_NAME), what, "give the weights under this name")
    tensors = {}
    for path in plain:
        if is_weights(path.name):
            with path.open("rb") as file:
                tensors |= read_tensors(file, path.stat().st_size, str(path))
    files = tuple(DigestedFile(path.name, path.stat().st_size, sha256[path.name]) for path in plain)
    parameters = sum(tensor.parameters for tensor in tensors.values())
    return Folder(digest_of(sha256), parameters, files)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(sha256: Mapping[str, str]) -> str:
    """Returns a model's digest: the SHA-256 of its single weight file, or of the names and digests
    of all weight files; `sha256` is by file name."""
    weights = {name: digest for name, digest in sha256.items() if is_weights(name)}
    if len(weights) == 1:
        return next(iter(weights.values()))
    lines = "".join(f"{name} {weights[name]}\n" for name in sorted(weights))
    return hashlib.sha256(lines.encode()).hexdigest()


def refuse_names(names: Sequence[str]) -> None:
    """Raises `WeightsError` unless these are the names of a model's files, none missing."""
    if len(names) > MOST_FILES:
        raise WeightsError("files", f"{len(names)} of them", f"{MOST_FILES} at most")
    for index, name in enumerate(names):
        refuse_name(name)
        if name in names[:index]:
            raise WeightsError(name, "is given twice", "give each file once")
    for name in REQUIRED:
        if name not in names:
            raise WeightsError(name, "is missing", "every model has one")
    shards = sorted(name for name in names if _SHARD.fullmatch(name))
    if FILE_NAME in names and (shards or INDEX in names):
        remedy = "leave one of the two out"
        raise WeightsError(FILE_NAME, "is given alongside weights in several files", remedy)
    if FILE_NAME not in names and not shards:
        raise WeightsError(FILE_NAME, "is missing", "give the weights under this name")
    if shards:
        _refuse_shards(shards, INDEX in names)


def _refuse_shards(shards: list[str], has_index: bool) -> None:
    if not has_index:
        raise WeightsError(INDEX, "is missing", "it maps each tensor to its file")
    total = int(_SHARD.fullmatch(shards[0])[2])  # type: ignore[index]
    expected = [f"model-{n:05}-of-{total:05}.safetensors" for n in range(1, total + 1)]
    if shards != expected:
        odd = sorted(set(expected) ^ set(shards))[0]
        what = "is missing" if odd in expected else f"does not belong to the {total} others"
        raise WeightsError(odd, what, "give all files of one model, and no others")


def _read(file: ModelFile) -> dict[str, Tensor]:
    with file.open() as content:
        return read_tensors(content, file.size, file.name)


def _merged(tensors: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    merged: dict[str, Tensor] = {}
    for name, part in tensors.items():
        if duplicate := next((key for key in part if key in merged), None):
            what = f"tensor {duplicate[:100]!r} is in another file too"
            raise WeightsError(name, what, "save the model again")
        merged |= part
    return merged
