"""Model directories of a Hugging Face hub.

Invariant: a directory that is returned names no code and no other location: no kernels of another
repository, and no base outside of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.hub.download import snapshot
from engine.hub.reference import HubError, RepoType, parse

_SETTINGS = ("config.json", "generation_config.json", "tokenizer_config.json")
_ADAPTER = "adapter_config.json"


def hub_model_directory(reference: str) -> Path:
    """Returns the folder of `hf:ORG/NAME@REVISION` in the client's cache; downloads what is not
    there.

    Raises:
        HubError: the model cannot be downloaded (`engine.hub.download.snapshot`), is an adapter, or
            its settings name code of another repository.
    """
    directory = snapshot(parse(reference, RepoType.MODEL))
    if (directory / _ADAPTER).is_file() and not (directory / "config.json").is_file():
        raise HubError(
            f"{reference}: holds an adapter, which names its base by itself; download both, set "
            f"base_model_name_or_path in {_ADAPTER} to the base's directory and name the adapter's"
        )
    for name in _SETTINGS:
        if kernel := _foreign_code(directory / name):
            raise HubError(
                f"{reference}: {name} names {kernel}, code of another repository, which is never "
                "run; name a model without it"
            )
    return directory


def _foreign_code(file: Path) -> str:
    """Returns the first `*_implementation` that is a repository, as `key = value`; else an empty
    text. A file that cannot be read is reported by `check_model_directory`."""
    try:
        settings = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return ""
    for key, value in _texts(settings):
        if "implementation" in key and "/" in value:
            return f"{key} = {value[:100]!r}"
    return ""


def _texts(settings: Any) -> Iterator[tuple[str, str]]:
    """Yields each text at any depth with the dotted path of its keys."""
    pending = [("", settings)]
    while pending:
        path, one = pending.pop()
        if isinstance(one, str):
            yield path, one
        elif isinstance(one, dict):
            pending += [(f"{path}.{key}".lstrip("."), inner) for key, inner in one.items()]
        elif isinstance(one, list):
            pending += [(path, inner) for inner in one]
