"""Tests that one problem of a version is read alone: stored, generated or from a file."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from engine.config.errors import ConfigError
from engine.config.problems import ProblemsConfig
from engine.problems.generator import GeneratedProblems, Split
from tests.helpers.datasets import lines_of, some_problems, stored_version
from webapp.artifacts.store import local_path
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.datasets.server_files.lookup import MOST_BYTES
from webapp.searches.problems import problem_of
from webapp.searches.problems import some_problems as first_of

pytestmark = pytest.mark.usefixtures("var_directory")


def a_version(cast, **spec) -> DatasetVersion:
    dataset = Dataset.objects.create(project=cast.project, name="trees")
    spec = ProblemsConfig(**spec).model_dump(mode="json")
    return DatasetVersion.objects.create(dataset=dataset, number=1, spec=spec, content_hash="0")


@pytest.fixture
def file(cast, tmp_path, settings):
    """A file of the server, listed by its operator, and the version that is that file."""
    path = tmp_path / "listed" / "trees.jsonl"
    path.parent.mkdir()
    path.write_bytes(lines_of(some_problems(5)))
    settings.DATASETS_DIRS = [path.parent]
    return path, a_version(cast, dataset=str(path))


def indexes(settings):
    return sorted(settings.PROBLEM_INDEX_DIR.iterdir())


def test_of_a_stored_version_no_other_line_is_read(cast):
    problems = some_problems(4)
    version = stored_version(cast, problems=problems)
    path = local_path(version.artifact_id)
    content = path.read_bytes()
    row = version.problems.get(number=3)
    kept = content[row.offset : row.offset + row.length]
    path.write_bytes(b"x" * row.offset + kept + b"x" * (len(content) - row.offset - row.length))
    assert problem_of(version, problems[2].id) == problems[2]
    assert [one["id"] for one in first_of(version)] == [one.id for one in problems]
    with pytest.raises(ConfigError, match="is not JSON"):
        problem_of(version, problems[0].id)
    with pytest.raises(ConfigError, match="no such problem; there are for example"):
        problem_of(version, "none")


def test_a_problem_that_is_too_large_for_a_search_is_refused_before_it_is_read(cast):
    (one,) = some_problems(1)
    large = replace(one, reference="#" * MOST_BYTES)
    with pytest.raises(ConfigError, match="a search at most 8,388,608"):
        problem_of(stored_version(cast, problems=[large]), one.id)


def test_any_generated_problem_of_the_test_split_is_read_by_index(cast):
    version = a_version(cast, seed=7, test=3)
    made = GeneratedProblems(7)
    index, last = next(made.stream(Split.TEST, 900_000_000))
    assert problem_of(version, f"generated-1-7-{index}") == last
    assert [one["id"] for one in first_of(version)] == [one.id for one in made.first(Split.TEST, 3)]
    index, _ = next(made.stream(Split.TRAIN))
    for wrong in (f"generated-1-7-{index}", "generated-1-8-5", "generated-1-7-05", "x"):
        with pytest.raises(ConfigError, match="no such problem"):
            problem_of(version, wrong)


def test_an_underspecified_problem_is_read_by_its_id(cast):
    version = a_version(cast, seed=7, test=3, underspecified_share=0.5, most_readings=4)
    made = GeneratedProblems(7, 0.5, most_readings=4).first(Split.TEST, 12)
    kinds = {one.id.partition("-")[0] for one in made}
    assert kinds == {"generated", "underspecified"}
    assert [problem_of(version, one.id) for one in made] == made
    assert [one["id"] for one in first_of(version)] == [one.id for one in made[:3]]
    other = next(one for one in made if one.id.startswith("underspecified"))
    for wrong in (f"{other.id[:-1]}8", other.id[:-2].replace("underspecified", "generated")):
        with pytest.raises(ConfigError, match="no such problem"):
            problem_of(version, wrong)


def test_a_file_is_read_once_and_then_one_line_of_its_index_at_a_time(file, settings):
    _, version = file
    problems = some_problems(5)
    assert [one["id"] for one in first_of(version)] == [one.id for one in problems]
    (index,) = indexes(settings)
    assert [problem_of(version, one.id) for one in problems] == problems
    rewritten = (index / "problems.jsonl").read_bytes()
    (index / "problems.jsonl").write_bytes(rewritten.replace(b"solve", b"other"))
    assert problem_of(version, problems[1].id).entry_point == "other", "not the source"
    with pytest.raises(ConfigError, match="no such problem"):
        problem_of(version, "none")
    assert indexes(settings) == [index]


def test_a_file_that_changes_is_read_again_and_old_indexes_go(file, settings):
    path, version = file
    settings.PROBLEM_INDEXES = 2
    for number in (6, 7, 8):
        path.write_bytes(lines_of(some_problems(number)))
        newest = some_problems(number)[-1]
        assert problem_of(version, newest.id) == newest
    assert len(indexes(settings)) == 2


@pytest.mark.parametrize(
    ("content", "limit", "reason"),
    [(b"", {}, "holds no problem"),
     (None, {"DATASET_READ_SECONDS": 0.01}, "reading it takes more than"),
     (json.dumps({"id": "a"}).encode(), {}, "no format has these fields")],
)  # fmt: skip
def test_a_file_that_cannot_be_read_within_the_limits_is_refused(
    file, settings, content, limit, reason
):
    path, version = file
    if content is not None:
        path.write_bytes(content)
    for name, value in limit.items():
        setattr(settings, name, value)
    with pytest.raises(ConfigError, match=reason):
        problem_of(version, "a")
    assert indexes(settings) == [], "and nothing is left behind"
