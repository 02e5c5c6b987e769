"""JSON Schema of REST's settings by dotted path, and the check that enforces it.

Invariant: `checked` accepts what the schema accepts, so a refusal after it is about settings that
do not fit each other, the recipe or the project's contents, which is a conflict (409).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from engine.config.agents import AgentConfig
from engine.config.errors import ConfigError, unstorable, validation_errors
from engine.config.method_settings import settings_fields
from engine.config.methods import registry_at
from engine.config.schema import RunConfig
from webapp.experiments.launch.sweeps import MOST_RUNS
from webapp.experiments.run_settings.hub import hub_reason
from webapp.experiments.run_settings.settings_schema import model_of
from webapp.experiments.scheduling.states import DoesNotFit, NotAllowed, NotNow
from webapp.rest.json_types import with_integers

_AGENT = r"agents\.([a-z][a-z0-9-]{0,39}|[0-9]{1,2})"
"""Agent in a path: by name, or by index."""
_UNKNOWN = "unknown setting; check the spelling against `python -m engine config`"
_DROPPED = ("title", "default", "description")
_NAMES = {
    "model": (
        "(starter|registry|package|local):[^\\x00\\n]+",
        "starter:NAME, registry:NAME@VERSION, package:NAME or local:NAME",
    ),
    "chat_template": (r"local:[^\x00\n]+\.jinja", "local:NAME.jinja"),
    "problems.dataset": (
        "generated|(dataset|local):[^\\x00\\n]+",
        "generated, dataset:NAME/NUMBER or local:NAME",
    ),
    "inference.reward_model": ("local:[^\\x00\\n]+", "local:NAME"),
}
"""Settings that name a location: pattern of the names, and their description in messages."""
_OPERATORS = {
    "compute.ray_address": "the server's operator sets Ray's address (RAY_ADDRESS); leave it unset"
}


@dataclass(frozen=True)
class _Leaf:
    """One setting."""

    adapter: TypeAdapter
    schema: dict[str, Any]
    pattern: str = ""
    reason: str = ""
    """Reason to refuse a text that does not match the pattern or, without one, any value except
    null."""

    def problems(self, path: str, value: Any) -> list[dict[str, Any]]:
        try:
            self.adapter.validate_json(json.dumps(with_integers(value)), strict=True)
        except ValidationError as error:
            return [_under(path, problem) for problem in validation_errors(error)]
        if unknown := list(_unknown_names(path, value, self.schema)):
            return unknown
        is_refused = self.reason and value is not None
        if is_refused and not (self.pattern and re.fullmatch(self.pattern, value, re.DOTALL)):
            reason = hub_reason(path, value) or self.reason
            return [_problem(path, value, reason) | {"of_location": bool(self.pattern)}]
        return []


@dataclass(frozen=True)
class _Table:
    """Settings that can be given as one object."""

    parts: dict[str, _Leaf | _Table]
    optional: bool

    def problems(self, path: str, value: Any) -> list[dict[str, Any]]:
        if value is None and self.optional:
            return []
        if not isinstance(value, dict):
            return [_problem(path, value, "give an object of settings")]
        return [problem for key, item in value.items() for problem in self._part(path, key, item)]

    def _part(self, path: str, key: str, item: Any) -> list[dict[str, Any]]:
        at, part = f"{path}.{key}", self.parts.get(key)
        return part.problems(at, item) if part else [_problem(at, item, _UNKNOWN)]


@dataclass(frozen=True)
class _Team:
    """Replacement of all agents."""

    agent: _Table

    def problems(self, path: str, value: Any) -> list[dict[str, Any]]:
        if not isinstance(value, list) or not 1 <= len(value) <= 64:
            return [_problem(path, value, "give a list of 1 to 64 agents")]
        unnamed = [
            _problem(f"{path}.{index}.name", None, "each agent has a name")
            for index, one in enumerate(value)
            if isinstance(one, dict) and "name" not in one
        ]
        return unnamed + [
            problem
            for index, one in enumerate(value)
            for problem in self.agent.problems(f"{path}.{index}", one)
        ]


_Setting = _Leaf | _Table | _Team


class Overrides(RootModel[dict[str, Any]]):
    """Dotted path to value: `search.nodes_per_tree`, `agents.oak.role`, `agents.0.role`."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        return _documented(cls, lambda schema: schema)


class Sweep(RootModel[dict[str, list[Any]]]):
    """Values to try, by path; every combination with every seed is a run, 64 at most."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        most = {"minItems": 1, "maxItems": MOST_RUNS, "uniqueItems": True}
        return _documented(cls, lambda schema: {"type": "array", "items": schema, **most})


def checked(overrides: Overrides, *, any_location: bool = False) -> dict[str, Any]:
    """Returns the overrides, if each path is a setting's and each value is valid for it; with
    `any_location`, as for an external engine, a setting that names a location accepts any text.

    Raises:
        ConfigError: with every fault.
    """
    items = overrides.root.items()
    problems = [problem for path, value in items for problem in _problems(path, value)]
    if any_location:
        problems = [problem for problem in problems if not problem.pop("of_location", False)]
    if problems:
        raise ConfigError(problems)
    return dict(overrides.root)


def checked_sweep(sweep: Sweep) -> dict[str, list[Any]]:
    """Returns the values to try, checked as by `checked`. Raises `ConfigError`."""
    problems = [
        problem
        for path, values in sweep.root.items()
        for value in values
        for problem in _problems(path, value)
    ]
    if problems:
        raise ConfigError(problems)
    return dict(sweep.root)


@contextmanager
def conflicts() -> Iterator[None]:
    """Wraps the use of checked settings: raises `DoesNotFit` in place of their `ConfigError`."""
    try:
        yield
    except NotNow:
        raise
    except NotAllowed as error:
        if not all(str(one["value"]).startswith("local:") for one in error.problems):
            raise
        raise DoesNotFit(error.problems) from error  # a valid name that does not exist
    except ConfigError as error:
        raise DoesNotFit(error.problems) from error


def _problems(path: str, value: Any) -> list[dict[str, Any]]:
    if unstorable_problems := unstorable(path, value):
        return unstorable_problems
    setting = _setting(path)
    return setting.problems(path, value) if setting else [_problem(path, value, _UNKNOWN)]


def _setting(path: str) -> _Setting | None:
    of_run, of_agent = _settings()
    if path in of_run:
        return of_run[path]
    agent = re.fullmatch(rf"{_AGENT}(?:\.(.+))?", path)
    return of_agent.get(agent[2] or "") if agent else None


@cache
def _settings() -> tuple[dict[str, _Setting], dict[str, _Setting]]:
    """Returns a run's settings by path, and an agent's by path below its own; "" is the agent."""
    run, agent = _table(RunConfig, ""), _table(AgentConfig, "")
    of_run: dict[str, _Setting] = {**dict(_flat("", run)), "agents": _Team(agent)}
    return of_run, {"": _Table(agent.parts, optional=True), **dict(_flat("", agent))}


def _flat(prefix: str, table: _Table) -> Iterator[tuple[str, _Setting]]:
    for name, part in table.parts.items():
        yield f"{prefix}{name}", part
        if isinstance(part, _Table):
            yield from _flat(f"{prefix}{name}.", part)


def _table(model: type[BaseModel], prefix: str, *, optional: bool = False) -> _Table:
    parts: dict[str, _Leaf | _Table] = {}
    for name, info in settings_fields(model).items():
        inner = model_of(info.annotation)
        if inner is AgentConfig:
            continue
        if inner:
            is_unset = info.default is None
            parts[name] = _table(inner, f"{prefix}{name}.", optional=is_unset)
        else:
            parts[name] = _leaf(f"{prefix}{name}", info)
    return _Table(parts, optional)


def _leaf(path: str, info: FieldInfo) -> _Leaf:
    kind = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
    adapter = TypeAdapter(kind)
    schema = _inlined(adapter.json_schema())
    if path in _OPERATORS:
        return _Leaf(adapter, {"type": "null"}, reason=_OPERATORS[path])
    if registry := registry_at(path):
        names = {"enum": registry.names()}
        of_items = {"items": {**schema["items"], **names}} if registry.many else names
        return _Leaf(adapter, {**schema, **of_items})
    if path not in _NAMES:
        return _Leaf(adapter, schema)
    pattern, names = _NAMES[path]
    text = {"type": "string", "pattern": f"^({pattern})$"}
    named = text if info.is_required() or info.default else {"anyOf": [text, {"type": "null"}]}
    return _Leaf(adapter, named, pattern, f"paths and addresses are not accepted: write {names}")


def _inlined(schema: Any, parts: Mapping[str, Any] | None = None) -> Any:
    """Returns a JSON schema without references, titles and defaults."""
    if isinstance(schema, list):
        return [_inlined(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    parts = schema.get("$defs", parts) or {}
    if "$ref" in schema:
        return _inlined(parts[schema["$ref"].rpartition("/")[2]], parts)
    inlined = {k: _inlined(v, parts) for k, v in schema.items() if k not in (*_DROPPED, "$defs")}
    is_free = inlined.get("type") == "string" and not inlined.keys() & {"pattern", "enum"}
    return {**inlined, "pattern": r"^[^\x00]*$"} if is_free else inlined


def _documented(model: type[BaseModel], of_value: Any) -> dict[str, Any]:
    """Returns the schema of single settings, grouped by equal schema; their help is in
    `/recipes/{recipe}/settings`. Omits tables, which `checked` accepts too, as redundant."""
    of_run, of_agent = _settings()
    paths: dict[str, list[str]] = {}
    for at, settings in (("", of_run), (rf"{_AGENT}\.", of_agent)):
        for path, one in settings.items():
            if isinstance(one, _Leaf):
                key = json.dumps(one.schema, sort_keys=True)
                paths.setdefault(key, []).append(f"{at}{re.escape(path)}")
    return {
        "type": "object",
        "title": model.__name__,
        "description": model.__doc__,
        "patternProperties": {
            f"^({'|'.join(matching)})$": of_value(json.loads(key))
            for key, matching in paths.items()
        },
        "additionalProperties": False,
    }


def _unknown_names(path: str, value: Any, schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields a problem for a value, or for each item of a list, that is none of its choices."""
    choices, of_items = schema.get("enum"), schema.get("items", {}).get("enum")
    given = [(path, value)] if choices else []
    if of_items:
        given = [(f"{path}.{index}", one) for index, one in enumerate(value)]
    for at, one in given:
        if one not in (names := choices or of_items):
            yield _problem(at, one, f"choose one of {', '.join(names)}")


def _under(path: str, problem: dict[str, Any]) -> dict[str, Any]:
    inner = problem["path"]
    return {**problem, "path": path if inner == "config" else f"{path}.{inner}"}


def _problem(path: str, value: Any, reason: str) -> dict[str, Any]:
    return {"path": path, "value": "..." if isinstance(value, dict) else value, "reason": reason}
