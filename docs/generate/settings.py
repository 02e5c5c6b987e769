"""The page of settings, from the JSON schema of `RunConfig`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from docs.generate import markdown
from docs.generate.markdown import code, paragraphs, sentence, table
from engine.config.methods import registry_at
from engine.config.schema import RunConfig

ABOUT = """
All settings of a run, as the command line (`PATH=VALUE`), the form, REST and a recipe name them:
the heading, a dot, and the name in its table, such as `training.steps` or `agents.NAME.model`.
Unknown paths and impossible values are refused. A recipe may have defaults other than these.
"""


def page() -> str:
    schema = RunConfig.model_json_schema()
    return markdown.page("Settings", ABOUT, *_sections(schema, schema, "", "The run"))


@cache
def paths() -> frozenset[str]:
    """Returns the paths of all settings and sections, those of an agent as `agents.NAME...`."""
    schema = RunConfig.model_json_schema()
    return frozenset(_paths(schema, schema, ""))


def _paths(schema: dict[str, Any], whole: dict[str, Any], prefix: str) -> Iterator[str]:
    for name, field in schema["properties"].items():
        below = _resolved(field["items"], whole) if name == "agents" else _model(field, whole)
        path = prefix + ("agents.NAME" if name == "agents" else name)
        yield path
        if below is not None:
            yield from _paths(below, whole, f"{path}.")


def _sections(schema: dict[str, Any], whole: dict[str, Any], path: str, title: str) -> Iterator:
    rows, nested = [], []
    for name, field in schema["properties"].items():
        below = _model(field, whole)
        if below is not None:
            nested.append((f"{path}{name}.", below, field))
            if "anyOf" in field:
                rows.append(_row(path + name, field, whole))
        elif name == "agents":
            nested.append(("agents.NAME.", _resolved(field["items"], whole), field))
        else:
            rows.append(_row(path + name, field, whole))
    yield f"## {title}"
    yield paragraphs(schema.get("description"))
    yield table(("setting", "type", "default", "meaning"), rows)
    for prefix, below, _ in nested:
        yield from _sections(below, whole, prefix, prefix.rstrip("."))


def _row(path: str, field: dict[str, Any], whole: dict[str, Any]) -> tuple[str, ...]:
    default = code(json.dumps(field["default"])) if "default" in field else "required"
    if field.get("default", "") is None:
        default = "unset"
    about = field.get("description") or _resolved(field, whole).get("description", "")
    return code(path.rsplit(".", 1)[-1]), _type(path, field, whole), default, sentence(about)


def _type(path: str, field: dict[str, Any], whole: dict[str, Any]) -> str:
    if registry := registry_at(path):
        names = " or ".join(map(code, registry.names()))
        return f"list of {names}" if registry.many else names
    kinds = [_kind(one, whole) for one in field.get("anyOf", [field])]
    return " or ".join(kind for kind in kinds if kind)


def _kind(field: dict[str, Any], whole: dict[str, Any]) -> str:
    field = _resolved(field, whole)
    if field.get("type") == "null":
        return ""
    if "enum" in field:
        return ", ".join(map(code, field["enum"]))
    if field.get("type") == "array":
        return f"list of {_kind(field['items'], whole)}"
    if field.get("type") == "object":
        return "the settings below" if "properties" in field else "table of names and values"
    bounds = [
        f"{sign} {field[key]:g}" if abs(field[key]) < 1e6 else f"{sign} {field[key]}"
        for key, sign in _BOUNDS.items()
        if key in field and field[key] != 2**31
    ]
    return " ".join([field["type"], ", ".join(bounds)]).strip()


_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def _model(field: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the schema of the settings below a field; None if it has none."""
    for one in field.get("anyOf", [field]):
        below = _resolved(one, whole)
        if "properties" in below:
            return below
    return None


def _resolved(field: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    if "allOf" in field:
        field = field["allOf"][0]
    if "$ref" not in field:
        return field
    return whole["$defs"][field["$ref"].rsplit("/", 1)[1]]
