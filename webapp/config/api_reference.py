"""Page that documents REST, rendered from the OpenAPI document; no script at all."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from webapp.telemetry.stream.protocol import Close


@require_safe
def reference(request: HttpRequest) -> HttpResponse:
    """reference.html: `tags` of the operations; `operations`, their HTML; `closes` (Close), the
    codes with which a socket of the stream is closed."""
    tags = [group["tag"] for group in _groups()]
    context = {"tags": tags, "operations": _operations(), "closes": list(Close)}
    return render(request, "reference.html", context)


@cache
def _operations() -> SafeString:
    """parts/operations.html, the same for all users: `groups`, [{tag, operations: [{method, path,
    id, summary, description, parameters: [{name, location, required, kind, description}], body,
    answers: [{status, what}]}]}]; `body` is the JSON Schema of the request body as text, or ""; and
    `examples`."""
    return render_to_string("parts/operations.html", {"groups": _groups()})


@cache
def _groups() -> list[dict[str, Any]]:
    from webapp.config.api import api

    document = api.get_openapi_schema()
    schemas = document["components"]["schemas"]
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = next(iter(operation.get("tags", ["others"])))
            groups.setdefault(tag, []).append(_operation(path, method, operation, schemas))
    return [{"tag": tag, "operations": groups[tag]} for tag in groups]


def _operation(
    path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]
) -> dict[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    schema = next(iter(content.values()), {}).get("schema", {})
    body = _resolved(schema, schemas)
    return {
        "method": method.upper(),
        "path": path,
        "id": operation["operationId"],
        "summary": operation.get("summary", ""),
        "description": operation.get("description", ""),
        "parameters": [_parameter(one) for one in operation.get("parameters", ())],
        "body": json.dumps(body, indent=1, ensure_ascii=False) if body else "",
        "examples": [json.dumps(one, indent=1) for one in body.get("examples", ())],
        "answers": [
            {"status": status, "what": answer["description"]}
            for status, answer in sorted(
                operation["responses"].items(), key=lambda item: str(item[0])
            )
        ],
    }


def _parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    schema = parameter["schema"]
    kinds = [one.get("type", "") for one in schema.get("anyOf", [schema])]
    return {
        "name": parameter["name"],
        "location": parameter["in"],
        "required": parameter["required"],
        "kind": " or ".join(kind for kind in kinds if isinstance(kind, str) and kind),
        "choices": schema.get("enum") or schema.get("items", {}).get("enum", ()),
        "description": parameter.get("description") or schema.get("description", ""),
    }


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return schemas[name] if name else schema
