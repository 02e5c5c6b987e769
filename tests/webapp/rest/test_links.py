"""Tests of the OpenAPI document's links: from what was created to every request about it."""

import json

from webapp.config.api import api
from webapp.rest.openapi.links import FIELDS, OBJECTS

DOCUMENT = json.loads(json.dumps(api.get_openapi_schema(), default=str))
OPERATIONS = {
    operation["operationId"]: (path, operation)
    for path, operations in DOCUMENT["paths"].items()
    for operation in operations.values()
}
LINKS = [
    (source, link)
    for source, (_, operation) in OPERATIONS.items()
    for answer in operation["responses"].values()
    for link in answer.get("links", {}).values()
]


def test_a_link_fills_every_placeholder_of_an_operation_that_there_is():
    for source, link in LINKS:
        path, operation = OPERATIONS[link["operationId"]]
        parameters = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
        assert link["parameters"].keys() == parameters, (source, path)


def test_a_link_points_at_what_the_answer_has():
    for source, link in LINKS:
        answers = OPERATIONS[source][1]["responses"]
        (answer,) = [one for one in answers.values() if link in one.get("links", {}).values()]
        example = answer["content"]["application/json"]["example"]
        for source_path in link["parameters"].values():
            where, _, name = source_path.rpartition("/")
            assert name in example if where else source_path.startswith("$request.path."), (
                source,
                source_path,
            )


def test_created_objects_link_to_read_update_and_delete():
    for source, targets in {
        "create_run": {"get_run", "mark_run", "stop_run", "fork_run", "create_share"},
        "create_comment": {"change_comment", "delete_comment"},
        "create_upload": {"get_upload", "append_to_upload", "finish_upload", "delete_upload"},
        "create_export": {"get_export", "get_export_file", "delete_export"},
        "create_project": {"get_project", "create_run", "create_upload", "create_export"},
    }.items():
        assert targets <= {link["operationId"] for name, link in LINKS if name == source}


def test_every_model_that_names_a_thing_is_one_of_the_document():
    models = DOCUMENT["components"]["schemas"]
    results = [(field, name) for field, names in OBJECTS.values() for name in names]
    for field, name in (*results, *FIELDS.values()):
        assert field in models[name]["properties"], name


def test_every_thing_is_a_placeholder_of_the_document():
    for path_prefix in OBJECTS:
        assert any(path.startswith(f"/api/v1{path_prefix}") for path in DOCUMENT["paths"]), (
            path_prefix
        )
