"""Settings files of a model's directory, of which only known keys are handed on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.config import git_lfs
from engine.config.model_settings import (
    CONFIG,
    FILES,
    SPECIAL_TOKENS,
    TOKENIZER,
    SettingsFault,
    loadable,
    refuse_mark,
    without_repetition,
)
from engine.config.model_settings.sizes import Shapes, check_sizes
from engine.config.model_settings.tokens import check_special_tokens, check_tokens


class ModelError(ValueError):
    """A model directory that cannot be used; names the file and the remedy."""


def settings_of(directory: Path, name: str, what: str = "settings") -> dict[str, Any]:
    """Returns the known keys of a settings file (`engine.config.model_settings.loadable`).

    Raises:
        ModelError: the file is missing or damaged, or a value is refused.
    """
    try:
        return loadable(name, read_json(directory / name, what))
    except SettingsFault as fault:
        raise ModelError(f"{directory / name}: {fault}") from None


def named_config(directory: Path) -> dict[str, Any]:
    """Returns the known keys of `config.json`, which must name its architecture; raises as
    `settings_of`."""
    settings = settings_of(directory, CONFIG, "the model's shape")
    if "architectures" not in settings:
        raise ModelError(
            f"{directory / CONFIG}: names no `architectures`; save it with save_pretrained"
        )
    return settings


def config_settings(directory: Path, shapes: Shapes) -> dict[str, Any]:
    """Returns `named_config` after comparison of its sizes with the weights; raises as
    `settings_of`."""
    settings = named_config(directory)
    try:
        check_sizes(settings, shapes)
    except SettingsFault as fault:
        raise ModelError(f"{directory / CONFIG}: {fault}") from None
    return settings


def tokenizer_settings(directory: Path) -> dict[str, Any]:
    """Returns the known keys of `tokenizer_config.json`, with those of `special_tokens_map.json`
    where the former lists no tokens, after a check that the tokens are within their bounds; raises
    as `settings_of`."""
    settings = settings_of(directory, TOKENIZER, "the tokenizer's settings")
    if "added_tokens_decoder" not in settings and (directory / SPECIAL_TOKENS).is_file():
        settings |= settings_of(directory, SPECIAL_TOKENS)
    file = directory / "tokenizer.json"
    try:
        check_tokens(read_json(file, "the tokenizer"))
        file = directory / TOKENIZER
        check_special_tokens(settings)
    except SettingsFault as fault:
        raise ModelError(f"{file}: {fault}") from None
    return settings


def read_json(file: Path, what: str) -> dict[str, Any]:
    """Returns the JSON object of a file; `what` says what it holds.

    Raises:
        ModelError: it is missing, or no JSON object.
    """
    if not file.is_file():
        raise ModelError(f"{file} is missing: it holds {what}")
    refuse_pointer(file)
    try:
        text = file.read_text("utf-8")
        refuse_mark(text)
        hook = without_repetition if file.name in FILES else None
        data = json.loads(text, object_pairs_hook=hook)
    except SettingsFault as fault:
        raise ModelError(f"{file} {fault}") from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file} is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise ModelError(f"{file} holds {type(data).__name__}, not an object")
    return data


def refuse_pointer(file: Path) -> None:
    """Raises `ModelError` if a file of a clone was not fetched."""
    if git_lfs.is_pointer_file(file):
        raise ModelError(f"{file} is {git_lfs.WHAT}; {git_lfs.REMEDY}")


def first_line(error: Exception) -> str:
    """Returns the first line of an error's message, or its type."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
