"""Links of the OpenAPI document: what an answer names, and what may be asked of it next.

Invariant: which links there are is read off the document alone, by which model of an answer names
the thing that a placeholder stands for (`THINGS`), or a field of a body (`FIELDS`). Whoever makes a
thing, or lists things, is led to every operation on it, and to all that is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webapp.examples import example_of

_ROOT = "/api/v1"
_RUN = ("RunOut", "RunListed", "RunDetail")
THINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "/workspaces/{slug}": ("slug", ("WorkspaceOut",)),
    "/workspaces/{slug}/members/{user_id}": ("id", ("MemberOut",)),
    "/workspaces/{slug}/invitations/{invitation_id}": ("id", ("InvitationOut",)),
    "/projects/{project_id}": ("id", ("ProjectOut",)),
    "/searches/problems/{dataset_version_id}": ("id", ("DatasetVersionOut",)),
    "/searches/{run_id}": ("id", ("SearchOut",)),
    "/experiments/{experiment_id}": (
        "id",
        ("ExperimentListed", "ExperimentOut", "ExperimentDetail"),
    ),
    "/runs/{run_id}": ("id", (*_RUN, "SearchOut")),
    "/runs/{run_id}/steps/{step}": ("step", ("StepOut",)),
    "/runs/{run_id}/trees/{tree}": ("tree", ("TreeOut",)),
    "/runs/{run_id}/trees/{tree}/nodes/{node}": ("node", ("NodeOut",)),
    "/runs/{run_id}/metrics/{name}": ("name", ("MetricOut",)),
    "/runs/{run_id}/shares/{share_id}": ("id", ("ShareOut", "NewShare")),
    "/comparison/shares/{share_id}": ("id", ("ComparisonShareOut", "MadeComparisonShare")),
    "/comments/{comment_id}": ("id", ("CommentOut",)),
    "/tokens/{token_id}": ("id", ("TokenOut",)),
    "/recipes/{recipe}": ("name", ("Recipe",)),
    "/models/{model_id}": ("id", ("ModelOut",)),
    "/models/{model_id}/versions/{number}": ("number", ("ModelVersionOut", "VersionDetail")),
    "/models/promotions/{promotion_id}": ("id", ("PromotionOut",)),
    "/models/evaluations/{evaluation_id}": ("id", ("EvaluationOut",)),
    "/uploads/{upload_id}": ("id", ("UploadOut",)),
    "/datasets/{dataset_id}": ("id", ("DatasetOut",)),
    "/datasets/versions/{dataset_version_id}": ("id", ("DatasetVersionOut",)),
    "/datasets/versions/{dataset_version_id}/problems/{number}": ("number", ("ProblemOut",)),
    "/datasets/reports/{report_id}": ("id", ("ReportOut",)),
    "/exports/{export_id}": ("id", ("ExportOut",)),
}
"""By the path up to its placeholder: the field, and the models that name it so."""
FIELDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "project": ("id", ("ProjectOut",)),
    "run": ("id", _RUN),
    "dataset_version": ("id", ("DatasetVersionOut",)),
    "uploads": ("id", ("UploadOut",)),
}
"""The same by a field of a body."""
_PLACE = re.compile(r"\{(\w+)\}")
_TELLING = {"get": {200}, "post": {201, 202}}
"""Statuses of answers that list or make something."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A thing in an answer: its model, where it stands, and what the request's path named."""

    model: str
    at: str
    """JSON pointer."""
    asked: frozenset[str]


def add_links(document: dict[str, Any]) -> dict[str, Any]:
    """Give each answer that names something links to what may be asked of it, in place."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for status, answer in operation["responses"].items():
                row = _row(document, path, answer) if status in _TELLING.get(method, ()) else None
                if row is None or (method == "get" and not row.at):
                    continue
                if links := dict(_links(document, row, operation["operationId"])):
                    answer["links"] = links
    return document


def _row(document: dict[str, Any], path: str, answer: dict[str, Any]) -> _Row | None:
    """The thing that was made, or the first of a list."""
    schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
    asked, at, name = frozenset(_PLACE.findall(path)), "", _name(schema)
    if name:
        first, rows = next(iter(document["components"]["schemas"][name]["properties"].items()))
        if rows.get("type") == "array":
            at, schema = f"/{first}", rows
    if "items" in schema:
        at, name = f"{at}/0", _name(schema["items"])
    return _Row(name.removesuffix("Part"), at, asked) if name else None


def _name(schema: dict[str, Any]) -> str:
    return schema.get("$ref", "").rpartition("/")[2]


def _links(document: dict[str, Any], row: _Row, source: str) -> Iterator[tuple[str, Any]]:
    for path, operations in document["paths"].items():
        for operation in operations.values():
            target = operation["operationId"]
            named = _parameters(path, row)
            if target == source or named is None:
                continue
            body = _body(document, operation, row)
            of_row = any(one.startswith("$response") for one in named.values())
            if of_row or body:
                link: dict[str, Any] = {"operationId": target, "parameters": named}
                yield target, {**link, "requestBody": body} if body else link


def _parameters(path: str, row: _Row) -> dict[str, str] | None:
    """What the path's placeholders stand for, after such a row; None if one is not known."""
    found = {}
    for place in _PLACE.finditer(path):
        name = place[1]
        field, models = THINGS.get(path[len(_ROOT) : place.end()], ("", ()))
        if row.model in models:
            found[name] = f"$response.body#{row.at}/{field}"
        elif name in row.asked:
            found[name] = f"$request.path.{name}"
        else:
            return None
    return found


def _body(document: dict[str, Any], operation: dict[str, Any], row: _Row) -> dict[str, Any] | None:
    """The operation's own example, of the row; None if its body names no such thing."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    schemas = document["components"]["schemas"]
    name = _name(content.get("schema", {}))
    for field, schema in schemas.get(name, {}).get("properties", {}).items():
        of, models = FIELDS.get(field, ("", ()))
        if row.model in models:
            value = f"$response.body#{row.at}/{of}"
            is_list = schema.get("type") == "array"
            if is_list and schema.get("minItems", 0) > 1:
                continue
            example = example_of(content["schema"], schemas)
            return {**example, field: [value] if is_list else value}
    return None
