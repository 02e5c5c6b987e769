"""Tests of the form of references to a hub."""

import pytest

from engine.hub.reference import HubError, RepoType, parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize("revision", ["main", "v1.0", "refs/convert/parquet", COMMIT])
def test_a_reference_names_repository_and_revision(revision):
    parsed = parse(f"hf:Elms/oak-1.5_B@{revision}", RepoType.MODEL)
    assert (parsed.repository, parsed.revision) == ("Elms/oak-1.5_B", revision)
    assert str(parsed) == f"hf:Elms/oak-1.5_B@{revision}"
    assert parsed.is_commit == (revision == COMMIT)
    assert str(parsed.at(COMMIT)) == f"hf:Elms/oak-1.5_B@{COMMIT}"


@pytest.mark.parametrize(
    "text",
    ["", "oak@main", "elms/oak", "elms/oak@", "elms/oak/x@main", "../oak@main", "elms/..@main",
     "elms/oak@../../x", "elms/oak@-x", "elms/o--k@main", "elms/oak.@main", "elms/oak@a b",
     "elms/oak@main\n", "/elms/oak@main", "elms/ök@main"],
)  # fmt: skip
def test_another_form_is_refused_with_the_right_one(text):
    with pytest.raises(HubError, match="write hf:ORG/NAME@REVISION") as caught:
        parse(f"hf:{text}", RepoType.DATASET)
    assert str(caught.value).startswith(f"hf:{text}: ")
