"""Tests that every operation of REST has examples of its request and its response."""

from collections import defaultdict

import jsonschema
import pytest

from webapp.config.api import api
from webapp.rest.openapi.examples import example_of


@pytest.fixture(scope="module")
def document():
    return api.get_openapi_schema()


def contents(document):
    """(operation and part, content) of every body and every successful response."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            name = f"{method} {path}"
            for media in operation.get("requestBody", {}).get("content", {}).values():
                yield f"{name}, body", media
            for status, answer in operation["responses"].items():
                if str(status).startswith("2"):
                    for media in answer.get("content", {}).values():
                        yield f"{name}, {status}", media


def test_every_operation_has_examples_that_are_as_its_schema_says(document):
    results = list(contents(document))
    assert len(results) > 80
    wrong = []
    for what, media in results:
        own = example_of(media["schema"], document["components"]["schemas"])
        whole = {**media["schema"], "components": document["components"]}
        for example in (media.get("example", own), own):
            problems = jsonschema.Draft202012Validator(whole).iter_errors(example)
            wrong += [
                f"{what}: {problem.json_path} {problem.message[:120]}" for problem in problems
            ]
    assert not wrong, "\n".join(wrong)


def test_each_answer_says_how_it_went(document):
    lacking = [
        f"{method} {path}"
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if not any(
            "example" in media or "examples" in media
            for status, answer in operation["responses"].items()
            if str(status).startswith("2")
            for media in answer.get("content", {"": {"example": None}}).values()
        )
    ]
    assert not lacking


def test_no_two_models_have_one_name():
    """With two, the document would contain one and describe the operations of both by it."""
    results = defaultdict(set)
    for _, router in api._routers:
        for view in router.path_operations.values():
            for operation in view.operations:
                sent = [m for m in operation.models if m.__ninja_param_source__ == "body"]
                for model in [*sent, *operation.response_models.values()]:
                    if isinstance(model, type):
                        for name, fields in _defined(model.model_json_schema()).items():
                            results[name].add(fields)
    assert len(results) > 50
    assert not {name for name, variants in results.items() if len(variants) > 1}


def _defined(schema):
    return {
        name: tuple(sorted(one.get("properties", ())))
        for name, one in schema.get("$defs", {}).items()
    }
