"""Recipes: named, tested settings, one TOML file each in this folder.

Invariant: recipe + overrides is the whole command line, web form and REST body of a run; the result
is a `RunConfig`, or a `ConfigError` that names every fault.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from engine.config.errors import ConfigError, unstorable
from engine.config.schema import RunConfig, parse_config

FOLDER = Path(__file__).parent

_AGENT = re.compile(r"agents\.([^.]*[^.\d][^.]*)(\.name)?")
"""Path of an agent by its name, or of its name."""


def recipe_names() -> list[str]:
    """Returns the names of the recipes that ship with the engine."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_recipe(name: str, overrides: dict[str, Any] | None = None) -> RunConfig:
    """Returns a recipe with dotted overrides, e.g. `{"search.nodes_per_tree": 4}`.

    List items are addressed by index (`agents.0.model`) or, for agents, by name
    (`agents.oak.model`).

    Raises:
        ConfigError: unknown recipe, unknown path or invalid value.
    """
    return parse_config(recipe_data(name, overrides))


def recipe_data(name: str, overrides: dict[str, Any] | None = None) -> dict[str, Any]:
    """Returns the plain data behind `load_recipe`, not yet validated.

    Raises:
        ConfigError: unknown recipe, or an override of an unknown path.
    """
    path = FOLDER / f"{name}.toml"
    if name not in recipe_names():
        reason = f"unknown recipe; choose one of {', '.join(recipe_names())}"
        raise ConfigError([{"path": "recipe", "value": name, "reason": reason}])
    data = tomllib.loads(path.read_text())
    data["recipe"] = name
    override(data, overrides or {})
    return data


def override(data: dict[str, Any], overrides: Mapping[str, Any]) -> None:
    """Sets dotted paths in plain data, in place, in any order.

    `agents.elm.name = "elm"` adds an agent of which nothing else is set, `agents.fern = None`
    removes one. Paths use an agent's name before any change of it.

    Raises:
        ConfigError: a path that does not exist, or a value that no database could store.
    """
    for dotted, value in overrides.items():
        if faults := unstorable(dotted, value):  # a later override may hide it from the rest
            raise ConfigError(faults)
    if "agents" in overrides:
        data["agents"] = overrides["agents"]
    team, named, gone = _team(data), {}, []
    if team is not None:
        present = _names(team)
        data["agents"] = team = [*team, *({"name": key} for key in _added(present, overrides))]
    for dotted, value in overrides.items():
        agent = _AGENT.fullmatch(dotted) if team is not None else None
        if agent and agent[2]:
            named[agent[1]] = value
        elif agent and value is None:
            gone.append(team[_place(team, agent[1], dotted)])
        elif dotted != "agents":
            _set(data, dotted, value)
    if team is not None:
        called = [
            (team[_place(team, key, f"agents.{key}.name")], value) for key, value in named.items()
        ]
        for agent, value in called:
            agent["name"] = value
        data["agents"] = [one for one in team if not any(one is other for other in gone)]


def agent_keys(names: Iterable[str], overrides: Mapping[str, Any]) -> list[str]:
    """Returns the names that overrides use for the agents that remain and that they add, in order;
    `names` are those of the recipe."""
    given = overrides.get("agents")
    present = _names(given) if isinstance(given, list) else list(names)
    return [
        key
        for key in (*present, *_added(present, overrides))
        if overrides.get(f"agents.{key}", "") is not None
    ]


def _added(present: list[str], overrides: Mapping[str, Any]) -> list[str]:
    found = (_AGENT.fullmatch(dotted) for dotted in overrides)
    return [one[1] for one in found if one and one[2] and one[1] not in present]


def _team(data: dict[str, Any]) -> list[Any] | None:
    return data["agents"] if isinstance(data.get("agents"), list) else None


def _names(agents: list[Any]) -> list[str]:
    return [agent["name"] for agent in agents if isinstance(agent, dict) and "name" in agent]


def _place(team: list[Any], key: str, dotted: str) -> int:
    try:
        return _position(team, key)
    except KeyError:
        reason = f"there is no such agent; there are {', '.join(map(str, _names(team)))}"
        raise ConfigError([{"path": dotted, "value": key, "reason": reason}]) from None


def parse_override(text: str) -> tuple[str, Any]:
    """Parses `PATH=VALUE` of a command line; the value is JSON, or else text.

    Raises:
        ConfigError: the equals sign is missing.
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
    """Returns the value at `key`; creates an empty table if it is missing or None."""
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
