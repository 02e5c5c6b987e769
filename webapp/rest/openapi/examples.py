"""Examples of REST requests and responses for the OpenAPI document.

A model's or operation's own example is kept. Otherwise one is composed from the schema, field by
field, so that it cannot contradict the schema.
"""

from __future__ import annotations

from typing import Any

_FORMATS = {
    "uuid": "5f0c0b6e-2a5e-4f0e-9d6e-0d8d3b1f4a77",
    "date-time": "2026-11-22T10:00:00Z",
    "binary": "...",
}
_NAMED = {
    "name": "Wider trees",
    "slug": "oak-lab",
    "username": "alice",
    "created_by": "alice",
    "author": "alice",
    "user": "alice",
    "by": "alice",
    "agent": "oak",
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "content_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "link": "https://grove.example/shared/...",
    "path": "search.nodes_per_tree",
    "role": "member",
    "visibility": "workspace",
    "error": "",
    "missing": "",
    "state": "running",
    "message": "step 3 begins",
    "level": "info",
}
_EXAMPLE_KEYS = ("examples", "example")


def add_examples(document: dict[str, Any]) -> dict[str, Any]:
    """Adds an example to every body and every response with a content, in place."""
    schemas = document["components"]["schemas"]
    for operations in document["paths"].values():
        for operation in operations.values():
            messages = [operation.get("requestBody", {}), *_successes(operation)]
            for one in messages:
                for media in one.get("content", {}).values():
                    _add(media, schemas)
    return document


def _successes(operation: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        response for status, response in operation["responses"].items() if str(status)[0] == "2"
    ]


def _add(media: dict[str, Any], schemas: dict[str, Any]) -> None:
    if not any(key in media for key in _EXAMPLE_KEYS):
        media["example"] = example_of(media.get("schema", {}), schemas)


def example_of(schema: dict[str, Any], schemas: dict[str, Any], name: str = "") -> Any:
    """The schema's own example, its default, or one composed of its parts."""
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas, name)
    if given := schema.get("examples"):
        return given[0]
    for key in ("example", "const"):
        if key in schema:
            return schema[key]
    if "enum" in schema:
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return example_of(schema[key][0], schemas, name)
    return _MAKERS.get(_kind(schema), _nothing)(schema, schemas, name)


def _kind(schema: dict[str, Any]) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "")
    return kind[0] if isinstance(kind, list) else kind


def _object(schema: dict[str, Any], schemas: dict[str, Any], name: str) -> dict[str, Any]:
    return {
        key: example_of(part, schemas, key) for key, part in schema.get("properties", {}).items()
    }


def _array(schema: dict[str, Any], schemas: dict[str, Any], name: str) -> list[Any]:
    if "prefixItems" in schema:
        return [example_of(one, schemas, name) for one in schema["prefixItems"]]
    items = schema.get("items", {})
    return [example_of(items, schemas, name) for _ in range(max(1, schema.get("minItems", 1)))]


def _text(schema: dict[str, Any], schemas: dict[str, Any], name: str) -> str:
    return _FORMATS.get(schema.get("format", ""), _NAMED.get(name, "..."))


def _integer(schema: dict[str, Any], schemas: dict[str, Any], name: str) -> int:
    return max(1, schema.get("minimum", 1))


def _number(schema: dict[str, Any], schemas: dict[str, Any], name: str) -> float:
    return max(0.5, schema.get("minimum", 0.5))


def _flag(schema: dict[str, Any], schemas: dict[str, Any], name: str) -> bool:
    return False


def _nothing(schema: dict[str, Any], schemas: dict[str, Any], name: str) -> Any:
    return {} if not schema else None


_MAKERS = {
    "object": _object,
    "array": _array,
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _flag,
}
