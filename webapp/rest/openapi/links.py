"""Links of the OpenAPI document: from a created object to the operations that accept it.

Invariant: links follow from the document alone: from which model of a response names the object of
a placeholder (`OBJECTS`), or of a body's field (`FIELDS`). A response that creates an object links
to every operation on it, and to all that is created from it; lists are left out, because they may
be empty, and a link must have a target.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webapp.rest.openapi.examples import example_of

_ROOT = "/api/v1"
OBJECTS: dict[str, tuple[str, frozenset[str]]] = {
    "/workspaces/{slug}": ("slug", frozenset({"WorkspaceOut"})),
    "/projects/{project_id}": ("id", frozenset({"ProjectOut"})),
    "/searches/problems/{dataset_version_id}": ("id", frozenset({"DatasetVersionOut"})),
    "/searches/{run_id}": ("id", frozenset({"SearchOut"})),
    "/experiments/{experiment_id}": ("id", frozenset({"ExperimentOut"})),
    "/runs/{run_id}": ("id", frozenset({"RunDetail", "SearchOut"})),
    "/runs/{run_id}/shares/{share_id}": ("id", frozenset({"NewShare"})),
    "/comparison/shares/{share_id}": ("id", frozenset({"MadeComparisonShare"})),
    "/reports/{report_page_id}": ("id", frozenset({"ReportPageOut"})),
    "/reports/{report_page_id}/shares/{share_id}": ("id", frozenset({"MadeReportShare"})),
    "/comments/{comment_id}": ("id", frozenset({"CommentOut"})),
    "/models/{model_id}": ("id", frozenset({"ModelOut"})),
    "/models/{model_id}/versions/{number}": ("number", frozenset({"VersionDetail"})),
    "/models/imports/{import_id}": ("id", frozenset({"ModelImportOut"})),
    "/models/promotions/{promotion_id}": ("id", frozenset({"PromotionOut"})),
    "/models/evaluations/{evaluation_id}": ("id", frozenset({"EvaluationOut"})),
    "/uploads/{upload_id}": ("id", frozenset({"UploadOut"})),
    "/datasets/versions/{dataset_version_id}": ("id", frozenset({"DatasetVersionOut"})),
    "/datasets/reports/{report_id}": ("id", frozenset({"ReportOut"})),
    "/exports/{export_id}": ("id", frozenset({"ExportOut"})),
    "/workspace-imports/{workspace_import_id}": ("id", frozenset({"WorkspaceImportOut"})),
}
"""Path up to its placeholder -> the field, and the models that name the object by it."""
FIELDS = {
    "project": ("id", "ProjectOut"),
    "run": ("id", "RunDetail"),
    "dataset_version": ("id", "DatasetVersionOut"),
    "uploads": ("id", "UploadOut"),
}
"""Field of a body -> the field that names the object, and its model."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_CREATED_STATUSES = (201, 202)


@dataclass(frozen=True, slots=True)
class _Created:
    """A created object: its model, and the names in the request's path."""

    model: str
    path_names: frozenset[str]


def add_links(document: dict[str, Any]) -> dict[str, Any]:
    """Adds to each response that names an object links to the operations on it, in place."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for status in _CREATED_STATUSES if method == "post" else ():
                created = _created(path, operation["responses"].get(status, {}))
                links = (
                    dict(_links(document, created, operation["operationId"])) if created else None
                )
                if links:
                    operation["responses"][status]["links"] = links
    return document


def _created(path: str, answer: dict[str, Any]) -> _Created | None:
    schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
    name = _name(schema)
    return _Created(name, frozenset(_PLACEHOLDER.findall(path))) if name else None


def _name(schema: dict[str, Any]) -> str:
    return schema.get("$ref", "").rpartition("/")[2]


def _links(document: dict[str, Any], created: _Created, source: str) -> Iterator[tuple[str, Any]]:
    for path, operations in document["paths"].items():
        for operation in operations.values():
            target = operation["operationId"]
            named = _parameters(path, created)
            if target == source or named is None:
                continue
            body = _body(document, operation, created)
            of_made = any(one.startswith("$response") for one in named.values())
            if of_made or body:
                link: dict[str, Any] = {"operationId": target, "parameters": named}
                yield target, {**link, "requestBody": body} if body else link


def _parameters(path: str, created: _Created) -> dict[str, str] | None:
    """Values of the path's placeholders after the creation; None if one is not known."""
    values = {}
    for match in _PLACEHOLDER.finditer(path):
        name = match[1]
        field, models = OBJECTS.get(path[len(_ROOT) : match.end()], ("", frozenset()))
        if created.model in models:
            values[name] = f"$response.body#/{field}"
        elif name in created.path_names:
            values[name] = f"$request.path.{name}"
        else:
            return None
    return values


def _body(
    document: dict[str, Any], operation: dict[str, Any], created: _Created
) -> dict[str, Any] | None:
    """The operation's example with the created object; None if its body names no such object."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    schemas = document["components"]["schemas"]
    name = _name(content.get("schema", {}))
    for field, schema in schemas.get(name, {}).get("properties", {}).items():
        of, model = FIELDS.get(field, ("", ""))
        if created.model == model:
            value = f"$response.body#/{of}"
            is_list = schema.get("type") == "array"
            if is_list and schema.get("minItems", 0) > 1:
                continue
            example = example_of(content["schema"], schemas)
            return {**example, field: [value] if is_list else value}
    return None
