"""Tests of the client's generated methods: one per operation of the document, and they work."""

import ast
import inspect
import json
import typing

import msgspec
import pytest

from tests.helpers.builders import a_run, a_token
from webapp.accounts.models import Scope
from webapp.client import Grove, Refused
from webapp.client.rest import models, operations
from webapp.client.rest.generate import FOLDER, Document
from webapp.client.rest.operations import Operations
from webapp.config.api import api

HOW = "make client"


@pytest.fixture(scope="module")
def document():
    return json.loads(json.dumps(api.get_openapi_schema(), default=str))


def names(document):
    return [one["operationId"] for ops in document["paths"].values() for one in ops.values()]


def tree(text):
    """The code's content, regardless of layout and imports."""
    body = ast.parse(text).body
    return [ast.dump(one) for one in body if not isinstance(one, ast.ImportFrom | ast.Import)]


def test_each_operation_has_its_method_and_no_method_is_of_none(document):
    own = {n for n, _ in inspect.getmembers(Operations, inspect.isfunction) if n[0] != "_"}
    assert own == set(names(document)), HOW
    assert len(own) == len(names(document)) > 120


def test_the_generated_client_matches_the_document(document):
    written = Document(document)
    for name, text in (("operations.py", written.operations()), ("models.py", written.models())):
        same = tree(text) == tree((FOLDER / name).read_text())
        assert same, f"{name} is not of this document: {HOW}"


def test_a_field_that_changes_type_or_is_removed_is_reported(document):
    """The comparison above detects what would make a caller fail."""
    known = Document(document)
    before = known.operations(), known.models()
    changed = json.loads(json.dumps(document))
    changed["components"]["schemas"]["RunDetail"]["properties"]["step"] = {"type": "string"}
    changed["components"]["schemas"]["RunDetailPart"]["properties"]["step"] = {"type": "string"}
    del changed["components"]["schemas"]["Priority"]["properties"]["priority"]
    other = Document(changed)
    after = other.operations(), other.models()
    assert tree(before[0]) != tree(after[0]) and tree(before[1]) != tree(after[1])


def test_every_answer_of_json_is_typed():
    """Methods return free-form objects only where the document does."""
    free = []
    for name, method in inspect.getmembers(Operations, inspect.isfunction):
        if name[0] == "_":
            continue
        result = typing.get_type_hints(method, vars(operations))["return"]
        if result == dict[str, typing.Any]:
            free.append(name)
    assert set(free) <= {"get_state", "get_step_trees", "get_tree", "list_points"}, free
    structs = [one for one in vars(models).values() if isinstance(one, type)]
    assert len([one for one in structs if issubclass(one, msgspec.Struct)]) > 80


def test_operations_without_a_method_of_their_own_work(site):
    token = a_token(site.cast.alice, site.cast.project.workspace, Scope.ADMIN)
    run = a_run(site.cast)
    with Grove(site.address, token) as grove:
        rest = grove.rest
        marked = rest.mark_run(run.pk, tags=["baseline"], starred=True)
        assert marked.tags == ["baseline"] and marked.starred and marked.id == run.pk
        assert [one.id for one in rest.list_runs(tag="baseline", starred=True).runs] == [run.pk]
        made = rest.create_experiment_of_runs(
            project=site.cast.project.pk, recipe="demo", seeds=[1, 2], key="e-1"
        )
        assert [one.seed for one in made.runs] == [1, 2]
        again = rest.create_experiment_of_runs(
            project=site.cast.project.pk, recipe="demo", seeds=[1, 2], key="e-1"
        )
        assert again.id == made.id
        comment = rest.create_comment(run=[run.pk], text="It learns.")
        assert rest.change_comment(comment.id, text="So.").text == "So."
        assert rest.delete_comment(comment.id) is None
        upload = rest.create_upload(project=site.cast.project.pk, kind="dataset", name="a", size=3)
        assert rest.append_to_upload(upload.id, content=b"abc", upload_offset=0).offset == 3
        assert rest.ask_upload(upload.id)["Upload-Offset"] == "3"
        assert b"".join(rest.get_events(run.pk, after=0)) == b""
        with pytest.raises(Refused, match="412"):
            rest.delete_upload(upload.id, if_match='"another"')
        with pytest.raises(Refused, match=r"search\.nodes_per_tree = 0"):
            rest.create_run(
                project=site.cast.project.pk, recipe="demo", overrides={"search.nodes_per_tree": 0}
            )
