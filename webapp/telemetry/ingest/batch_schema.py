"""JSON Schema of an external engine's batch: one variant of a line per kind of event, derived from
the payload structs of `engine.events.vocabulary`, with the bounds of the database."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.config.names import PATTERN_OR_EMPTY
from engine.events.vocabulary import KINDS
from webapp.experiments.tracked_runs import LAST_SECOND
from webapp.telemetry.ingest.external_engines import (
    MOST_EVENTS,
    NAMING,
    NAMING_MANY,
    PAYLOAD_BOUNDS,
)
from webapp.telemetry.ingest.figures import (
    FIGURE_KINDS,
    TOKEN_LISTS,
    figures_of,
    token_lists_of,
)

_INT64 = {"minimum": -(2**63), "maximum": 2**63 - 1}
_TREE = {"minimum": 0, "maximum": 2**63 - 1}
_NODE = {"minimum": 0, "maximum": 2**31 - 1}
_REFERENCE = "#/$defs/"


def _variants() -> list[dict[str, Any]]:
    """Returns the schema of a line of each kind."""
    references, parts = msgspec.json.schema_components(list(KINDS.values()))
    names = [one["$ref"].removeprefix(_REFERENCE) for one in references]
    return [_line(kind, parts[name], parts) for kind, name in zip(KINDS, names, strict=True)]


def _line(kind: str, payload: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    family = kind.partition(".")[0]
    whole = _plain(payload, parts)
    whole["properties"].pop("type", None)  # the kind, which the line names
    whole["required"] = [name for name in whole.get("required", ()) if name != "type"]
    _allow_gaps(kind, whole)
    for name in NAMING:
        if name in whole["properties"]:
            whole["properties"][name]["pattern"] = PATTERN_OR_EMPTY
    for name in NAMING_MANY:
        _name_items(whole["properties"].get(name, {}))
    return {
        "type": "object",
        "title": kind,
        "properties": {
            "seq": {"type": "integer", "minimum": 1, "maximum": 2**63 - 1},
            "time": {
                "type": "number",
                "minimum": 0,
                "maximum": LAST_SECOND,
                "title": "Unix seconds",
            },
            "kind": {"const": kind},
            "tree": _index(_TREE, is_required=family in ("tree", "node")),
            "node": _index(_NODE, is_required=family == "node"),
            "payload": whole,
        },
        "required": ["seq", "time", "kind", "tree", "node", "payload"],
    }


def _allow_gaps(kind: str, payload: dict[str, Any]) -> None:
    """Figures may be null or left out (`webapp.telemetry.ingest.figures`)."""
    if kind in TOKEN_LISTS:
        _allow_gaps_of_tokens(kind, payload)
    if kind not in FIGURE_KINDS:
        return
    numbers, tables, _ = figures_of(KINDS[kind])
    properties = payload["properties"]
    for name in numbers:
        properties[name] = {"anyOf": [properties[name], {"type": "null"}]}
    for name in tables:
        figure = {"anyOf": [properties[name]["additionalProperties"], {"type": "null"}]}
        properties[name] = {**properties[name], "additionalProperties": figure}
    optional = numbers.keys() | tables.keys()
    payload["required"] = [name for name in payload["required"] if name not in optional]


def _allow_gaps_of_tokens(kind: str, payload: dict[str, Any]) -> None:
    inner = payload if kind == "node.text" else payload["properties"]["nodes"]["items"]
    names = token_lists_of(kind)
    for name in names:
        figure = {"anyOf": [{"type": "number"}, {"type": "null"}]}
        inner["properties"][name] = {
            "anyOf": [{**inner["properties"][name], "items": figure}, {"type": "null"}]
        }
    inner["required"] = [name for name in inner["required"] if name not in names]


def _name_items(schema: dict[str, Any]) -> None:
    if "items" in schema:
        schema["items"]["pattern"] = PATTERN_OR_EMPTY
    if "additionalProperties" in schema:
        schema["propertyNames"] = {"pattern": PATTERN_OR_EMPTY}


def _index(bounds: dict[str, int], *, is_required: bool) -> dict[str, Any]:
    return {"type": "integer" if is_required else ["integer", "null"], **bounds}


def _plain(schema: dict[str, Any], parts: dict[str, Any], name: str = "") -> dict[str, Any]:
    """Returns the schema with references resolved and bounds added."""
    if "$ref" in schema:
        return _plain(parts[schema["$ref"].removeprefix(_REFERENCE)], parts, name)
    inlined = {key: value for key, value in schema.items() if key not in ("title", "description")}
    if "properties" in inlined:
        properties = inlined["properties"].items()
        inlined["properties"] = {key: _plain(part, parts, key) for key, part in properties}
    for key in ("items", "additionalProperties"):
        if isinstance(inlined.get(key), dict):
            inlined[key] = _plain(inlined[key], parts)
    if "anyOf" in inlined:
        inlined["anyOf"] = [_plain(part, parts, name) for part in inlined["anyOf"]]
    if name in PAYLOAD_BOUNDS:
        inlined |= {"minimum": 0, "maximum": PAYLOAD_BOUNDS[name]}
    elif inlined.get("type") == "integer":
        inlined |= _INT64
    return inlined


_HELLO = {
    "seq": 1,
    "time": 1790000000.5,
    "kind": "log.line",
    "tree": None,
    "node": None,
    "payload": {"level": "info", "message": "hello from elsewhere"},
}
BATCH = {
    "type": "object",
    "properties": {
        "events": {"type": "array", "items": {"oneOf": _variants()}, "maxItems": MOST_EVENTS},
        "session": {"type": ["string", "null"], "format": "uuid"},
    },
    "required": ["events"],
    "additionalProperties": False,
    "examples": [{"events": [_HELLO]}],
}
