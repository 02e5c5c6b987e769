"""The page of REST operations, from the OpenAPI document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from docs.generate import markdown
from docs.generate.markdown import code, paragraphs, sentence, table
from webapp.config.api import api

ABOUT = """
Every operation under `/api/v1`, by subject. `/api/v1/openapi.json` of a server has the schemas of
what is sent and returned, and `/api/` shows it. Conventions (idempotency keys, ETags, refusals, the
parameters `cursor`, `limit` and `fields`) are on the page
[Programs](../guides/rest.md#conventions).
"""


COMMON = ("fields", "cursor", "limit")


def page() -> str:
    document = api.get_openapi_schema()
    return markdown.page("REST operations", ABOUT, *_parts(document))


def _parts(document: dict[str, Any]) -> Iterator[str]:
    by_tag: dict[str, list[str]] = defaultdict(list)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = next(iter(operation.get("tags", ["others"])))
            by_tag[tag].extend(_operation(method, path, operation))
    for tag, blocks in by_tag.items():
        yield f"## {tag}"
        yield from blocks


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### {operation['operationId']}"
    yield f"`{method.upper()} {path}`"
    yield paragraphs(operation.get("description"))
    rows = [_parameter(one) for one in operation.get("parameters", ()) if _is_its_own(one)]
    yield table(("parameter", "type", "meaning"), rows)
    body = _body(operation)
    good = [str(status) for status in operation["responses"] if str(status) < "400"]
    yield f"{body}Answers {', '.join(sorted(good)) or 'no success status'}."


def _body(operation: dict[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    if not content:
        return ""
    media, media_content = next(iter(content.items()))
    name = media_content.get("schema", {}).get("$ref", "").rsplit("/", 1)[-1]
    return f"Takes {f'`{name}` as ' if name else ''}`{media}`. "


def _is_its_own(given: dict[str, Any]) -> bool:
    """Returns whether neither the path shows the parameter nor the conventions explain it."""
    return given["in"] == "query" and given["name"] not in COMMON


def _parameter(given: dict[str, Any]) -> tuple[str, ...]:
    schema = given["schema"]
    kinds = [one.get("type") for one in schema.get("anyOf", [schema])]
    kind = " or ".join(one for one in kinds if isinstance(one, str) and one != "null")
    needed = ", required" if given.get("required") else ""
    about = given.get("description") or schema.get("description", "")
    return code(given["name"]), kind + needed, sentence(about)
