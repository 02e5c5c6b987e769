"""Tests of `fields` and ETags on every operation that documents them."""

import pytest
from django.test import Client

from tests.helpers.large import large_but
from tests.security.rules import ROWS
from tests.security.test_schema_fuzz import operations
from tests.security.test_walk import filled_in, send_request

READS = {op["operationId"]: op for _, method, op in operations() if method == "get"}


def names_of(op):
    results = [one for one in op.get("parameters", ()) if one["name"] == "fields"]
    return results[0]["schema"].get("items", {}).get("enum") if results else None


SPARSE = {name: names for name, op in READS.items() if (names := names_of(op))}
AS_A_WHOLE = {
    # Columns of points have `fields` of their own; the others are a log, a file, a list of numbers.
    "list_points", "get_state", "get_events", "get_step_trees", "get_tree", "list_evaluations",
    "get_checkpoints", "get_dataset_content", "get_card", "get_archive", "get_export_file",
    "export_workspace", "get_audit_file", "get_report_file",
}  # fmt: skip


@pytest.fixture
def alice(cast):
    client = Client()
    client.force_login(cast.alice)
    return client


def read(client, name, cast, arguments, **query):
    (row,) = [row for row in ROWS if row.name == f"api-1:{name}"]
    requested = row.body(cast) if callable(row.body) else row.body
    return client.get(filled_in(row.name, arguments), {**requested, **query})


def rows_key(whole):
    """The key of a list's rows; None for a single object."""
    others = [name for name in whole if name != "next"] if isinstance(whole, dict) else []
    return others[0] if len(others) == 1 and isinstance(whole[others[0]], list) else None


def things(response, place):
    """The rows of a list, or the response itself."""
    found = response[place] if place else response
    return found if isinstance(found, list) else [found]


WITH_ROWS = [name for name in SPARSE if name != "get_answer"]  # which has none yet


def test_every_read_operation_has_fields_unless_listed_as_whole():
    assert READS.keys() - SPARSE.keys() == AS_A_WHOLE


@pytest.mark.parametrize("name", large_but(list(SPARSE)[::2], SPARSE))
def test_only_the_requested_fields_are_returned(alice, cast, arguments, name):
    fields = SPARSE[name]
    expected = [one for one in fields if one != "id"][-1]
    whole = read(alice, name, cast, arguments)
    assert whole.status_code == 200 and whole["ETag"]
    place = rows_key(whole.json())
    result = read(alice, name, cast, arguments, fields=expected)
    assert result.status_code == 200
    for thing in filter(None, things(result.json(), place)):
        assert thing.keys() == {expected, *({"id"} & set(fields))}
    every = read(alice, name, cast, arguments, fields=",".join(fields)).json()
    for thing in filter(None, things(every, place)):
        assert thing.keys() == set(fields)


@pytest.mark.parametrize("name", large_but(WITH_ROWS[::3], WITH_ROWS))
def test_a_missing_field_is_named(alice, cast, arguments, name):
    first = SPARSE[name][0]
    wrong = read(alice, name, cast, arguments, fields=f"{first},nonsense")
    assert wrong.status_code == 422
    (problem,) = wrong.json()["problems"]
    assert (problem["path"], problem["value"]) == ("fields", "nonsense") and first in problem[
        "reason"
    ]


def test_a_sparse_answer_has_an_etag_of_its_own(alice, cast, arguments):
    row = next(row for row in ROWS if row.name == "api-1:get_run")
    whole = send_request(alice, row, cast, arguments)["ETag"]
    address = filled_in(row.name, arguments) + "?fields=name,state"
    sparse = alice.get(address)
    assert sparse.json().keys() == {"id", "name", "state"} and sparse["ETag"] != whole
    assert alice.get(address, headers={"If-None-Match": sparse["ETag"]}).status_code == 304
    assert alice.get(address, headers={"If-None-Match": whole}).status_code == 200
