"""Tests that the problems of a run are recorded by content."""

import gzip
import json
import tracemalloc

import pytest

from engine.config.errors import ConfigError
from engine.config.problems import ProblemsConfig
from engine.problems.generator import make_problem
from engine.problems.jsonl import save_problems
from tests.engine.problems import rows
from tests.helpers.large import large_but
from webapp.datasets.services import version_of

SIZES = {"train": 1, "validation": 1, "test": 1}


def test_the_same_settings_are_the_same_version(cast):
    problems = ProblemsConfig(seed=4)
    assert version_of(cast.project, problems) == version_of(cast.project, problems)


def test_another_seed_is_another_version(cast):
    first = version_of(cast.project, ProblemsConfig(seed=1))
    second = version_of(cast.project, ProblemsConfig(seed=2))
    assert (first.number, second.number) == (1, 2) and first.dataset == second.dataset


def test_settings_that_were_recorded_before_there_was_a_mixture_are_the_same_version(cast):
    version = version_of(cast.project, ProblemsConfig(seed=4))
    assert set(version.spec) == {"dataset", "seed", "train", "validation", "test"}
    assert version.content_hash.startswith("3e5524c8b52c43d5")
    mixed = version_of(cast.project, ProblemsConfig(seed=4, underspecified_share=0.5))
    fewer = ProblemsConfig(seed=4, underspecified_share=0.5, most_readings=4)
    assert len({version.pk, mixed.pk, version_of(cast.project, fewer).pk}) == 3
    assert mixed.spec["underspecified_share"] == 0.5


def test_a_file_is_identified_by_content_and_not_by_name(cast, tmp_path):
    file = tmp_path / "problems.jsonl"
    sizes = {"train": 3, "validation": 1, "test": 1}
    problems = [make_problem(1, index)[0] for index in range(6)]
    save_problems(file, problems[:5])
    first = version_of(cast.project, ProblemsConfig(dataset=str(file), **sizes))
    save_problems(file, problems)
    second = version_of(cast.project, ProblemsConfig(dataset=str(file), **sizes))
    assert first.content_hash != second.content_hash and second.number == 2


def test_problems_without_tests_are_refused_by_line(cast, tmp_path):
    file = tmp_path / "problems.jsonl"
    problems = [make_problem(1, index)[0] for index in range(5)]
    lines = []
    for problem in problems:
        save_problems(file, [problem])
        lines.append(file.read_text())
    file.write_text("".join(lines).replace('"private_tests": [', '"private_tests": [], "x": [', 1))
    with pytest.raises(ConfigError) as caught:
        version_of(cast.project, ProblemsConfig(dataset=str(file)))
    assert {fault["path"] for fault in caught.value.problems} == {"problems.dataset"}
    assert "problems.jsonl:1" in str(caught.value)
    assert not cast.project.datasets.exists()


def test_a_file_too_small_for_its_splits_is_refused(cast, tmp_path):
    file = tmp_path / "problems.jsonl"
    save_problems(file, [make_problem(1, 0)[0]])
    with pytest.raises(ConfigError, match="lower problems"):
        version_of(cast.project, ProblemsConfig(dataset=str(file)))


def published(path):
    without_tests = {**rows.MBPP, "task_id": 12, "test_list": []}
    data = [rows.MBPP, without_tests, rows.MBPP_SANITIZED, rows.MBPP_PLUS_TABLE]
    path.write_text("".join(json.dumps(row) + "\n" for row in data))
    return ProblemsConfig(dataset=str(path), **SIZES)


def test_problems_left_out_of_a_published_file_are_listed(cast, client, tmp_path):
    version = version_of(cast.project, published(tmp_path / "mbpp.jsonl"))
    (sentence,) = version.left_out
    assert "mbpp.jsonl:2: test_list" in sentence and "without tests" in sentence
    client.force_login(cast.bob)
    page = client.get("/datasets/").content.decode()
    assert "1 skipped" in page and "mbpp.jsonl:2: test_list" in page
    (dataset,) = client.get("/api/v1/datasets").json()["datasets"]
    assert dataset["versions"][0]["left_out"] == [sentence]


def test_how_a_file_is_packed_does_not_change_its_version(cast, tmp_path):
    plain = published(tmp_path / "mbpp.jsonl")
    first = version_of(cast.project, plain)
    (tmp_path / "mbpp.jsonl").write_bytes(gzip.compress((tmp_path / "mbpp.jsonl").read_bytes()))
    assert version_of(cast.project, plain) == first
    assert version_of(cast.project, plain.model_copy(update={"format": "mbpp"})) == first


def test_a_file_of_unknown_format_is_refused_with_its_fields(cast, tmp_path):
    (tmp_path / "a.json").write_text('[{"x": 1}]')
    with pytest.raises(ConfigError, match=r"fields = \['x'\]: no format has these fields"):
        version_of(cast.project, ProblemsConfig(dataset=str(tmp_path / "a.json"), **SIZES))


def test_a_long_name_and_odd_problems_can_be_recorded(cast, tmp_path):
    folder = tmp_path / ("n" * 240)
    folder.mkdir()
    with (folder / "\udcff.jsonl").open("w") as file:
        for name in (11, "a\0b\ud800"):  # the second equals the first
            file.write(json.dumps({**rows.MBPP, "task_id": name}) + "\n")
    problems = ProblemsConfig(dataset=str(folder), train=1, validation=0, test=0)
    version = version_of(cast.project, problems)
    version.refresh_from_db()
    assert version.dataset.name == "n" * 200
    assert len(version.left_out) == 1


def test_the_first_of_very_many_errors_are_reported(cast, tmp_path):
    file = tmp_path / "wrong.jsonl"
    file.write_text('{"statement": "s", "entry_point": "f"}\n' * 1000)
    with pytest.raises(ConfigError) as refusal:
        version_of(cast.project, ProblemsConfig(dataset=str(file), **SIZES))
    assert len(refusal.value.problems) == 21
    assert "2980 more" in refusal.value.problems[-1]["reason"]


def many_problems(tmp_path):
    """A file of 4 MB."""
    file = tmp_path / "many.jsonl"
    save_problems(file, [make_problem(1, index)[0] for index in range(4000)])
    return file


def test_a_server_file_is_read_once_outside_the_web_process(cast, tmp_path, settings):
    file = many_problems(tmp_path)
    tracemalloc.start()
    version = version_of(cast.project, ProblemsConfig(dataset=str(file), **SIZES))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000 < file.stat().st_size, f"{peak:,} bytes"
    assert version.content_hash and not version.left_out
    settings.DATASET_READ_SECONDS = 0.01
    other = version_of(cast.project, ProblemsConfig(dataset=str(file), seed=2, **SIZES))
    assert other.number == 2, "64 runs of an experiment read it once"
    with pytest.raises(ConfigError, match=r"holds 4000 problems.*lower problems\.validation"):
        version_of(cast.project, ProblemsConfig(dataset=str(file), train=1, test=4000))


@pytest.mark.parametrize(
    ("limit", "value"),
    large_but(
        [("DATASET_READ_SECONDS", 0.01)],
        [("DATASET_READ_SECONDS", 0.01), ("DATASET_READ_BYTES", 50 << 20)],
    ),
)
def test_a_file_that_takes_too_much_to_read_starts_no_run(
    cast, client, tmp_path, settings, limit, value
):
    file = many_problems(tmp_path)
    settings.DATASETS_DIRS = [tmp_path]
    setattr(settings, limit, value)
    client.force_login(cast.bob)
    overrides = {"problems.dataset": f"local:{file.name}"}
    new = {"project": cast.project.pk, "recipe": "demo", "overrides": overrides}
    response = client.post("/api/v1/runs", new, "application/json")
    (problem,) = response.json()["problems"]
    assert (response.status_code, problem["path"]) == (409, "problems.dataset")
    assert "reading it takes more than" in problem["reason"] and "split it" in problem["reason"]
    assert not cast.project.datasets.exists()
