"""Sparse fields: a read of an object or a list by REST names the `fields` to return.

Invariant: the operations and their fields follow from the OpenAPI document alone: an operation that
responds with a model has `fields` without declaring it. The id of an object is always returned.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from webapp.rest.problem_details import Invalid

FIELDS = "fields"
_ALWAYS = "id"
_PLACEHOLDER = re.compile(r"<(?:\w+:)?(\w+)>")


@dataclass(frozen=True, slots=True)
class Shape:
    """The selectable fields of a response: of the response itself, or of each row of a list."""

    rows: str | None
    """The field that contains the rows; None if the response itself is the object, or the list."""
    names: tuple[str, ...]


def document(schema: dict[str, Any]) -> dict[str, Shape]:
    """Adds `fields` to every operation of the OpenAPI document that responds with a model; returns
    their shapes by path."""
    models, shapes = schema["components"]["schemas"], {}
    for path, operations in schema["paths"].items():
        if "get" in operations and (match := _shape(operations["get"], models)):
            shapes[path], content = match
            operations["get"].setdefault("parameters", []).append(_parameter(shapes[path]))
            content["schema"] = _part(content["schema"], models, rows=shapes[path].rows is not None)
    return shapes


def chosen(shapes: dict[str, Shape], request: HttpRequest, data: Any) -> Any:
    """The response reduced to the requested fields; `shapes` are those of the document.

    Raises:
        Invalid: a requested field does not exist.
    """
    shape = shapes.get("/" + _PLACEHOLDER.sub(r"{\1}", request.resolver_match.route))
    if shape is None:
        return data
    requested = [one.strip() for one in ",".join(request.GET.getlist(FIELDS)).split(",")]
    if unknown := [name for name in requested if name not in shape.names]:
        raise Invalid(FIELDS, ",".join(unknown), f"give some of {','.join(shape.names)}")
    selected = {_ALWAYS, *requested}
    if data is None:
        return None
    if shape.rows:
        return {**data, shape.rows: [_only(row, selected) for row in data[shape.rows]]}
    return (
        [_only(row, selected) for row in data] if isinstance(data, list) else _only(data, selected)
    )


def _only(row: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name in names}


def _shape(
    operation: dict[str, Any], models: dict[str, Any]
) -> tuple[Shape, dict[str, Any]] | None:
    """The shape of a read, with the content that has its schema; None if it returns no model."""
    content = operation["responses"].get(200, {}).get("content", {}).get("application/json")
    names = {one["name"] for one in operation.get("parameters", ())}
    if content is None or FIELDS in names:
        return None
    model = _model(content["schema"], models)
    if model is None:
        return None
    rows = _rows(model)
    item = _model(model["properties"][rows], models) if rows else model
    return (Shape(rows, tuple(item["properties"])), content) if item else None


def _name(schema: dict[str, Any]) -> str | None:
    """Name of the model that a schema refers to: itself, optional, or a list of it."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "anyOf" in schema:
        return next(filter(None, map(_name, schema["anyOf"])), None)
    return _name(schema["items"]) if "items" in schema else None


def _model(schema: dict[str, Any], models: dict[str, Any]) -> dict[str, Any] | None:
    name = _name(schema)
    return models[name] if name and "properties" in models[name] else None


def _rows(model: dict[str, Any]) -> str | None:
    """The field with a list's rows: it has no other but the cursor of the next page."""
    names = [name for name in model["properties"] if name != "next"]
    first = model["properties"][names[0]]
    return names[0] if len(names) == 1 and first.get("type") == "array" else None


def _parameter(shape: Shape) -> dict[str, Any]:
    description = "Only these fields, separated by commas"
    description += f"; the {_ALWAYS} is always included." if _ALWAYS in shape.names else "."
    names = {"type": "string", "enum": list(shape.names)}
    return {
        "in": "query",
        "name": FIELDS,
        "required": False,
        "description": description,
        "style": "form",
        "explode": False,
        "schema": {"type": "array", "items": names, "minItems": 1},
    }


def _part(schema: dict[str, Any], models: dict[str, Any], *, rows: bool) -> dict[str, Any]:
    """The schema with models whose fields, or whose rows' fields, may be left out."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        whole, part = models[name], f"{name}Part"
        if rows:
            at = _rows(whole)
            inner = _part(whole["properties"][at], models, rows=False)
            models[part] = {
                **whole,
                "title": part,
                "properties": {**whole["properties"], at: inner},
            }
        else:
            required = [_ALWAYS] if _ALWAYS in whole["properties"] else []
            models[part] = {**whole, "title": part, "required": required}
        return {"$ref": f"#/components/schemas/{part}"}
    if "anyOf" in schema:
        return {**schema, "anyOf": [_part(one, models, rows=rows) for one in schema["anyOf"]]}
    if "items" in schema:
        return {**schema, "items": _part(schema["items"], models, rows=rows)}
    return schema
