"""Named, tested settings: one TOML file per recipe, in this folder.

Invariant: recipe + overrides is the whole command line, web form and REST body of a run; what
comes out is a `RunConfig`, or a `ConfigError` that names every fault.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from engine.config import RunConfig, parse_config
from engine.faults import ConfigError, unstorable

FOLDER = Path(__file__).parent


def recipe_names() -> list[str]:
    """Names of the recipes that ship with the engine."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_recipe(name: str, overrides: dict[str, Any] | None = None) -> RunConfig:
    """A recipe with dotted overrides, e.g. `{"search.nodes_per_tree": 4}`.

    List items are addressed by position (`agents.0.model`) or, for agents, by name
    (`agents.oak.model`).

    Raises:
        ConfigError: unknown recipe, unknown path or impossible value.
    """
    return parse_config(recipe_data(name, overrides))


def recipe_data(name: str, overrides: dict[str, Any] | None = None) -> dict[str, Any]:
    """The plain data behind `load_recipe`, not yet validated."""
    path = FOLDER / f"{name}.toml"
    if name not in recipe_names():
        reason = f"unknown recipe; choose one of {', '.join(recipe_names())}"
        raise ConfigError([{"path": "recipe", "value": name, "reason": reason}])
    data = tomllib.loads(path.read_text())
    data["recipe"] = name
    override(data, overrides or {})
    return data


def override(data: dict[str, Any], overrides: dict[str, Any]) -> None:
    """Set dotted paths in plain data, in place.

    Raises:
        ConfigError: a path that leads nowhere, or a value that no database could store.
    """
    for dotted, value in overrides.items():
        if faults := unstorable(dotted, value):  # a later override may hide it from the rest
            raise ConfigError(faults)
        _set(data, dotted, value)


def parse_override(text: str) -> tuple[str, Any]:
    """`PATH=VALUE` of a command line; the value is JSON, or else text.

    Raises:
        ConfigError: there is no equals sign.
    """
    path, equals, value = text.partition("=")
    if not equals:
        reason = "overrides are written PATH=VALUE, e.g. search.nodes_per_tree=4"
        raise ConfigError([{"path": path, "value": text, "reason": reason}])
    try:
        return path, json.loads(value)
    except (ValueError, RecursionError):
        return path, value


def _set(data: dict[str, Any], dotted: str, value: Any) -> None:
    *parents, last = dotted.split(".")
    here: Any = data
    try:
        for key in parents:
            here = here[_position(here, key)] if isinstance(here, list) else _table(here, key)
        here[_position(here, last) if isinstance(here, list) else last] = value
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise ConfigError(
            [{"path": dotted, "value": value, "reason": "no such setting in this recipe"}]
        ) from None


def _table(here: dict[str, Any], key: str) -> Any:
    """What lies at `key`; a table that is not there, or that is unset, begins empty."""
    if here.get(key) is None:
        here[key] = {}
    return here[key]


def _position(items: list[Any], key: str) -> int:
    if key.isascii() and key.isdigit():
        return int(key)
    for index, item in enumerate(items):
        if isinstance(item, dict) and item.get("name") == key:
            return index
    raise KeyError(key)
