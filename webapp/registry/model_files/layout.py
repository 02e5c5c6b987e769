"""Layout of a model's files (Hugging Face), and checks that they belong together.

Invariants: only listed names are accepted, so no name leads out of a folder and no file is code;
weights are safetensors by content; the engine can load what passes. Files are given as
`ModelFile`s: the checks do not distinguish a folder from the artifact store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine.config.model_settings import SPECIAL_TOKENS
from engine.resources.model_files.weights_fit import (
    UNTIED,
    WeightsMisfit,
    refuse_dtypes,
    refuse_misfit,
    tied_names,
)
from webapp.model_names import (
    CONFIG,
    FILE_NAME,
    INDEX,
    LINEAGE,
    SETTINGS,
    TEMPLATE,
    TEXTS,
    TOKENIZER,
    TOKENIZER_CONFIG,
    TOKENS,
    fault_of_names,
    is_weights,
    part_of_folder,
)
from webapp.registry.model_files.chat_templates import check_chat_templates
from webapp.registry.model_files.numbers import MOST_BYTES, are_equal, refuse_not_finite
from webapp.registry.model_files.safetensors import Tensor, WeightsError, read_tensors
from webapp.registry.model_files.settings_files import (
    check_config,
    check_further_settings,
    check_index,
    check_lineage,
    check_text,
    check_tokenizer,
    check_tokenizer_config,
    check_tokens,
)


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
    warnings: tuple[str, ...] = ()


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
    shapes = {name: tensor.shape for name, tensor in merged.items()}
    config = check_config(by_name[CONFIG], shapes)
    with _named(INDEX if INDEX in by_name else FILE_NAME):
        refuse_dtypes({name: tensor.dtype for name, tensor in merged.items()})
        refuse_misfit(config.settings, shapes)
    _refuse_numbers(by_name, tensors, tied_names(config.settings, shapes))
    settings = check_tokenizer_config(
        by_name[TOKENIZER_CONFIG], by_name.get(SPECIAL_TOKENS), has_file=TEMPLATE in by_name
    )
    warnings = check_tokenizer(by_name[TOKENIZER], config.vocabulary, settings)
    warnings += check_chat_templates(by_name[TOKENIZER_CONFIG], by_name.get(TEMPLATE))
    for name in SETTINGS & by_name.keys():
        check_further_settings(by_name[name], config.vocabulary)
    if LINEAGE in by_name:
        check_lineage(by_name[LINEAGE])
    for name in TOKENS & by_name.keys():
        check_tokens(by_name[name])
    for name in TEXTS & by_name.keys():
        check_text(by_name[name])
    parameters = sum(tensor.parameters for tensor in merged.values())
    return Layout(config.architecture, parameters, tuple(tensors), warnings)


def files_of(folder: Path) -> list[ModelFile]:
    """Returns the files of a local folder.

    Raises:
        WeightsError: it is no folder, or contains something other than plain files.
    """
    if not folder.is_dir():
        raise WeightsError(str(folder), "is no folder", "name one in Hugging Face layout")
    files = []
    for path in sorted(folder.iterdir()):
        if not path.is_file():
            raise WeightsError(str(path), "is no plain file", "leave it out")
        files.append(_model_file(path))
    return files


def model_files_of(folder: Path) -> tuple[list[ModelFile], dict[str, str]]:
    """Returns the files of a local folder that are a model's, and why each of the others is left
    out, by name.

    Raises:
        WeightsError: it is no folder.
    """
    if not folder.is_dir():
        raise WeightsError(str(folder), "is no folder", "name one in Hugging Face layout")
    paths = sorted(folder.iterdir())
    taken, left_out = part_of_folder([path.name for path in paths if path.is_file()])
    left_out |= {path.name: "is no plain file" for path in paths if not path.is_file()}
    return [_model_file(folder / name) for name in taken], left_out


def _model_file(path: Path) -> ModelFile:
    return ModelFile(path.name, path.stat().st_size, lambda: path.open("rb"))


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
    if fault := fault_of_names(names):
        raise WeightsError(fault.file, fault.what, fault.remedy)


@contextmanager
def _named(name: str) -> Iterator[None]:
    try:
        yield
    except WeightsMisfit as fault:
        raise WeightsError(name, fault.what, fault.remedy) from None


def _read(file: ModelFile) -> dict[str, Tensor]:
    with file.open() as content:
        return read_tensors(content, file.size, file.name)


def _refuse_numbers(
    files: Mapping[str, ModelFile],
    tensors: Mapping[str, Mapping[str, Tensor]],
    tied: tuple[str, str] | None,
) -> None:
    left = MOST_BYTES
    for name, held in tensors.items():
        with files[name].open() as content:
            left -= refuse_not_finite(content, held, name, left)
    if tied is None:
        return
    one, other = (next(name for name, held in tensors.items() if key in held) for key in tied)
    with files[one].open() as first, files[other].open() as second:
        if not are_equal(first, tensors[one][tied[0]], second, tensors[other][tied[1]]):
            raise WeightsError(other, *UNTIED)


def _merged(tensors: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    merged: dict[str, Tensor] = {}
    for name, part in tensors.items():
        if duplicate := next((key for key in part if key in merged), None):
            what = f"tensor {duplicate[:100]!r} is in another file too"
            raise WeightsError(name, what, "save the model again")
        merged |= part
    return merged
