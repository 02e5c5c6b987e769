"""Form schema of a run's settings: groups of fields, derived from the engine's config models.

Invariant: every setting of `RunConfig` appears once, with the help, range and choices that its
model declares; a setting added to the engine appears automatically.
"""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from engine.config.agents import AgentConfig
from engine.config.method_settings import MethodSettings, settings_items
from engine.config.methods import registry_at
from engine.config.schema import RunConfig
from engine.config.weight_sharing import with_shared_settings
from webapp.experiments.run_settings.toml import value_text

_RECORD = {"recipe", "recipe_version", "agents"}
_ONE_OF = re.compile(r"\^\(([\w|]+)\)\$")
_LONG = {"role", "question"}
_WHOLE = {"template_options"}
"""Tables of free names, which are one setting each."""
_UNITS = (
    ("_seconds", "seconds"), ("seconds_per_tree", "seconds"), ("minutes", "minutes"),
    ("_mb", "MB"), ("_gib", "GiB"), ("_bytes", "bytes"), ("_tokens", "tokens"),
    ("tokens_per_tree", "tokens"), ("nodes_per_tree", "nodes"), ("tree_nodes", "nodes"),
    ("_every", "steps"), ("steps", "steps"), ("_nodes", "nodes"),
)  # fmt: skip


AGENTS = "agents."
NEW_AGENT = "new-agent"
"""Placeholder name of an agent that is not added yet."""


@dataclass(frozen=True)
class Setting:
    """One field. `value` is the default, as TOML; `kind` is flag, choice, number, text, long or
    toml."""

    path: str
    label: str
    kind: str
    help: str
    value: str
    choices: list[str] = field(default_factory=list)
    range: str = ""
    """Range in words, with the unit."""
    optional: bool = False
    boxes: list[str] = field(default_factory=list)
    """Names that a list of names may hold: one checkbox each."""

    @property
    def id(self) -> str:
        """Id of its element on the page."""
        return "set-" + re.sub(r"[^a-z0-9]+", "-", self.path)

    @property
    def options(self) -> list[str]:
        """Options of a list to choose from."""
        return ["true", "false"] if self.kind == "flag" else self.choices

    @property
    def is_text(self) -> bool:
        """Whether its field holds the plain text, without quotes."""
        return self.kind in ("text", "long")

    @property
    def shown(self) -> str:
        """The value as in the field: a text without its quotes, empty if unset."""
        if self.value.startswith('"'):
            return str(json.loads(self.value))
        return "" if self.value == "unset" else self.value


@dataclass(frozen=True)
class Group:
    """The settings of one table."""

    path: str
    title: str
    settings: list[Setting]

    @property
    def agent(self) -> str:
        """Name in paths of the agent whose settings these are; empty for those of the run."""
        return self.path.removeprefix(AGENTS) if self.path.startswith(AGENTS) else ""


def setting_groups(config: RunConfig, keys: Sequence[str] | None = None) -> list[Group]:
    """Returns all settings, with the values of `config`; `keys` are its agents' names in paths, if
    they differ from their names."""
    groups = [Group("", "Run", list(_settings("", config, _RECORD)))]
    keys = keys or [agent.name for agent in config.agents]
    groups += [_agent(key, agent) for key, agent in zip(keys, config.agents, strict=True)]
    for name in RunConfig.model_fields:
        value = getattr(config, name)
        if isinstance(value, BaseModel):
            groups.append(Group(name, name.capitalize(), list(_settings(f"{name}.", value, set()))))
    return groups


def new_agent(key: str) -> Group:
    """Returns the default settings of an agent with the name `key` in paths: without a model, which
    each must have."""
    group = _agent(key, AgentConfig(name=NEW_AGENT, model=" "))
    values = {f"{group.path}.name": value_text(key), f"{group.path}.model": value_text("")}
    settings = [replace(one, value=values.get(one.path, one.value)) for one in group.settings]
    return replace(group, settings=settings)


def _agent(key: str, agent: AgentConfig) -> Group:
    path = f"{AGENTS}{key}"
    return Group(path, f"Agent {key}", list(_settings(f"{path}.", agent, set())))


def _settings(prefix: str, model: BaseModel, without: set[str]) -> Iterator[Setting]:
    for name, info, value in settings_items(model):
        if name in without or (not prefix and isinstance(value, BaseModel)):
            continue
        inner = model_of(info.annotation)
        if inner is None:
            yield _setting(f"{prefix}{name}", name, info, value)
        elif value is not None:
            of_method = isinstance(model, MethodSettings)
            for one in _settings(f"{prefix}{name}.", value, set()):
                yield replace(one, label=f"{name}: {one.label.lower()}") if of_method else one
        else:  # an absent table can be started from its defaults
            yield Setting(f"{prefix}{name}", _label(name), "toml", info.description or "",
                          value_text(None), optional=True)  # fmt: skip


def _setting(path: str, name: str, info: FieldInfo, value: Any) -> Setting:
    kinds, metadata = _unwrapped(info.annotation)
    limits = [*info.metadata, *metadata]
    optional = type(None) in kinds
    (kind, *_) = [one for one in kinds if one is not type(None)]
    choices = _choices(path, kind, limits)
    plain = value.value if isinstance(value, Enum) else value
    return Setting(
        path=path,
        label=_label(name),
        kind=_kind(name, kind, choices),
        help=(info.description or "").strip(),
        value=value_text(list(plain) if isinstance(plain, tuple) else plain),
        choices=choices,
        range=_any_of(path) or _range(name, kind, limits),
        optional=optional,
        boxes=_listable(path),
    )


def _kind(name: str, kind: Any, choices: list[str]) -> str:
    if choices:
        return "choice"
    if kind is bool:
        return "flag"
    if kind in (int, float):
        return "number"
    if kind is str:
        return "long" if name in _LONG else "text"
    return "toml"


def _choices(path: str, kind: Any, limits: list[Any]) -> list[str]:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [member.value for member in kind]
    if (registry := registry_at(path)) and not registry.many:
        return registry.names()
    patterns = (getattr(limit, "pattern", None) for limit in limits)
    match = next((_ONE_OF.fullmatch(p) for p in patterns if isinstance(p, str)), None)
    return match[1].split("|") if match else []


def _any_of(path: str) -> str:
    """Returns the names that a list of methods may hold, in words; empty for other settings."""
    names = _listable(path)
    return f"a list of {', '.join(names)}" if names else ""


def _listable(path: str) -> list[str]:
    """Returns the methods that a list of methods may hold; none for other settings."""
    registry = registry_at(path)
    return registry.names() if registry and registry.many else []


def _range(name: str, kind: Any, limits: list[Any]) -> str:
    words = []
    for limit in limits:
        if isinstance(limit, Ge):
            words.append(f"from {limit.ge:.12g}")
        elif isinstance(limit, Gt):
            words.append(f"above {limit.gt:.12g}")
        elif isinstance(limit, Le):
            words.append(f"to {limit.le:.12g}")
        elif isinstance(limit, Lt) and limit.lt < 2**31:
            words.append(f"below {limit.lt:.12g}")
    unit = next((unit for end, unit in _UNITS if name.endswith(end)), "")
    if kind is int and not unit and words:
        unit = "whole"
    return ", ".join(filter(None, [" ".join(words), unit]))


def _unwrapped(annotation: Any) -> tuple[list[Any], list[Any]]:
    """Returns the plain types of an annotation, and the metadata of `Annotated`."""
    if typing.get_origin(annotation) is typing.Annotated:
        kind, *metadata = typing.get_args(annotation)
        kinds, more = _unwrapped(kind)
        return kinds, [*_constraints(metadata), *more]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        kinds, constraints = [], []
        for part in typing.get_args(annotation):
            inner, metadata = _unwrapped(part)
            kinds += inner
            constraints += metadata
        return kinds, constraints
    return [annotation], []


def _constraints(metadata: list[Any]) -> Iterator[Any]:
    for one in metadata:
        yield from one.metadata if isinstance(one, FieldInfo) else [one]


def model_of(annotation: Any) -> type[BaseModel] | None:
    kinds, _ = _unwrapped(annotation)
    models = [k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)]
    return models[0] if models else None


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def flat(config: dict[str, Any]) -> dict[str, Any]:
    """Returns the leaves of resolved settings by dotted path, agents by name; lists are leaves."""
    agents = {agent["name"]: agent for agent in config["agents"]}
    return dict(_leaves("", {**config, "agents": agents}))


def dotted(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the leaves of settings of any shape by dotted path."""
    return dict(_leaves("", values)) if values else {}


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict) or not value or path.rpartition(".")[2] in _WHOLE:
        yield path, value
        return
    for key, item in value.items():
        yield from _leaves(f"{path}.{key}" if path else key, item)


def changes(base: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    """Returns the overrides that turn resolved settings `base` into `target`, without recipe and
    version."""
    old, new = flat(with_shared_settings(base)), flat(with_shared_settings(target))
    names = [[agent["name"] for agent in one["agents"]] for one in (base, target)]
    overrides = {} if names[0] == names[1] else {"agents": target["agents"]}
    for path, value in new.items():
        skip = path.split(".")[0] in ("recipe", "recipe_version") or (
            overrides.get("agents") and path.startswith("agents.")
        )
        if not skip and (path not in old or old[path] != value):
            overrides[path] = value
    return overrides
