"""Tests that an upload becomes an immutable version, or is refused and leaves nothing."""

from __future__ import annotations

import gzip
import html
import io
import json
import pickle
import re
import zipfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import psycopg
import pyarrow
import pytest
from django.db import connection
from pyarrow import parquet

from engine.config.errors import ConfigError
from engine.config.problems import ProblemsConfig
from engine.problems.errors import DatasetError
from engine.problems.jsonl import save_problems
from engine.problems.load import load_dataset
from engine.problems.source import load_problem_set
from tests.engine.problems import rows
from tests.helpers.builders import a_held_run, a_model_directory, a_run, an_event
from tests.helpers.datasets import a_finished_upload, lines_of, some_problems, stored_version
from tests.helpers.large import large_but
from tests.helpers.waiting import eventually
from tests.webapp.artifacts.test_uploads import files_below
from webapp.artifacts.models import Artifact, Upload
from webapp.artifacts.store import local_path
from webapp.datasets import reports
from webapp.datasets.models import Dataset, DatasetProblem, DatasetReport, DatasetVersion
from webapp.datasets.parsing import parse
from webapp.datasets.references import for_engine
from webapp.datasets.services import version_of
from webapp.experiments.models import Run
from webapp.projects.models import Visibility
from webapp.projects.services import create_project, create_workspace
from webapp.registry.services import register_starters
from webapp.telemetry.ingest.ingest import ingest

GOOD = lines_of(some_problems())
SIZES = {"train": 10, "validation": 1, "test": 1}
JSON = {"content_type": "application/json"}


@pytest.fixture
def bob(client, cast, var_directory):
    client.force_login(cast.bob)
    return client


def made(client, cast, content=GOOD, name="trees", **fields):
    upload = a_finished_upload(cast, cast.bob, content)
    body = {"project": cast.project.pk, "name": name, "uploads": [str(upload.pk)], **fields}
    return client.post("/api/v1/datasets", body, **JSON)


def checked(version, failed=(), unverified=()):
    """Ends the version's check as a worker does."""
    requested = reports.request_validation(version, version.created_by)
    taken = reports.take_report()
    assert taken.pk == requested.pk
    finding = {"verdict": "wrong_answer", "passed": 0.5, "reason": "expected 1, got 2"}
    payload = {
        "totals": {"tests": 9},
        "failed": [{**finding, "id": one} for one in failed],
        "unverified": [{**finding, "id": one, "verdict": "no_program"} for one in unverified],
    }
    reports.complete_validation(taken, payload)
    version.refresh_from_db()
    return version


def test_an_upload_becomes_a_version_with_its_problems(bob, cast, var_directory):
    content = b"".join(json.dumps(row).encode() + b"\n" for row in (rows.HUMANEVAL, rows.MBPP))
    answer = made(bob, cast, gzip.compress(content), format="humaneval", note="first")
    assert answer.status_code == 201, answer.json()
    body = answer.json()
    assert body["statistics"]["problems"] == 1 and len(body["left_out"]) == 1
    assert "problems.jsonl:2" in body["left_out"][0] and str(var_directory) not in str(body)
    assert body["reference"] == "dataset:trees/1" and body["faulty"] is None
    (problem,) = bob.get(f"/api/v1/datasets/versions/{body['id']}/problems").json()["problems"]
    assert problem["has_reference"] and problem["check_state"] == "open"
    path = f"/api/v1/datasets/versions/{body['id']}"
    whole = bob.get(f"{path}/problems/1").json()["content"]
    assert whole["reference"] and whole["public_tests"]
    assert bob.get(f"{path}/validation").json()["state"] == "queued"
    version = DatasetVersion.objects.get(pk=body["id"])
    assert [path.name for path in files_below(var_directory)] == [version.artifact_id]


def test_a_downloaded_dataset_is_readable_by_the_engine(bob, cast, tmp_path):
    version = made(bob, cast).json()["id"]
    answer = bob.get(f"/api/v1/datasets/versions/{version}/content")
    assert answer["Content-Disposition"] == 'attachment; filename="trees-v1.jsonl"'
    (tmp_path / "down.jsonl").write_bytes(b"".join(answer))
    assert load_dataset(tmp_path / "down.jsonl").problems == some_problems()


def test_the_same_problems_are_the_same_version(bob, cast):
    first, again = made(bob, cast), made(bob, cast, gzip.compress(GOOD))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    other = made(bob, cast, lines_of(some_problems(4)))
    assert (other.json()["number"], other.json()["parent"]) == (2, first.json()["id"])
    assert not Upload.objects.exists()


def test_a_table_in_several_files_is_one_dataset(bob, cast):
    table = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist([rows.MBPP]), table)
    second = json.dumps({**rows.MBPP, "task_id": 3, "text": "Another."}).encode()
    uploads = [a_finished_upload(cast, cast.bob, one) for one in (table.getvalue(), second)]
    body = {"project": cast.project.pk, "name": "m", "uploads": [str(one.pk) for one in uploads]}
    reply = bob.post("/api/v1/datasets", body, **JSON).json()
    assert reply["statistics"]["problems"] == 2 and len(reply["spec"]["uploads"]) == 2


def a_zip(content=GOOD) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../problems.jsonl", content)
    return packed.getvalue()


def deep() -> bytes:
    return b"[" * 100_000 + b"]" * 100_000


ATTACKS = {
    "a zip": (a_zip(), "zip archive"),
    "problems with a zip behind them": (GOOD + a_zip(), "not JSON|decode"),
    "a picture before the problems": (b"GIF89a\n" + GOOD, "image"),
    "a page that is also problems": (b"<script>/*\n" + GOOD + b"*/</script>", "page"),
    "a comment around the problems": (GOOD + b"# <html>", "not JSON"),
    "a pickle": (pickle.dumps({"statement": "s"}), "pickle"),
    "a program": (b"\x7fELF" + b"\0" * 64, "program"),
    "no text": (b"\xff\xfe{\0}\0", "not text"),
    "no UTF-8": (b'{"id": "\xff\xfe"}\n', "UTF-8|not JSON|codec"),
    "deep JSON": (deep(), "nested too deeply"),
    "deep in a row": (b'{"statement": "s", "entry_point": ' + deep() + b"}\n", "nested too deeply"),
    "a parquet that ends early": (b"PAR1" + b"\0" * 100, "cannot be read"),
    "a gzip that ends early": (gzip.compress(GOOD)[:-20], "cannot be read"),
    "a zip in a zip": (a_zip(a_zip()), "zip archive"),
    "a zip in a gzip": (gzip.compress(a_zip()), "not text|not JSON|zip|codec|UTF-8"),
    "a gzip in a gzip": (
        gzip.compress(gzip.compress(GOOD)),
        "packed by gzip twice; unpack it once",
    ),
    "a gzip with a zip behind it": (gzip.compress(GOOD) + a_zip(), "cannot be read"),
    "nothing of a dataset": (b'{"x": 1}\n', "no format has these fields"),
    "tests that are missing": (b'{"statement": "s", "entry_point": "f"}\n', "public_tests"),
}


@pytest.mark.parametrize("name", large_but(list(ATTACKS)[::2], ATTACKS))
def test_an_invalid_dataset_is_refused_and_nothing_stays(bob, cast, var_directory, name):
    content, reason = ATTACKS[name]
    refusal = made(bob, cast, content)
    assert refusal.status_code == 422
    reply = " ".join(problem["reason"] for problem in refusal.json()["problems"])
    assert re.search(reason, reply), reply
    assert str(var_directory) not in reply
    nothing_is_left(var_directory)


BAD_LINES = {
    "torn": json.dumps(rows.MBPP_SANITIZED).encode()[:-30],
    "no object": b"[1]",
    "no UTF-8": b'{"text": "\xff"}',
    "a number too long": b'{"task_id": 1' + b"0" * 10_001 + b"}",
}


@pytest.mark.parametrize("kind", BAD_LINES)
def test_a_bad_line_is_left_out_in_the_words_of_the_command_line(bob, cast, tmp_path, kind):
    content = json.dumps(rows.MBPP).encode() + b"\n" + BAD_LINES[kind] + b"\n"
    content += json.dumps(rows.MBPP_SANITIZED).encode()
    (tmp_path / "problems.jsonl").write_bytes(content)
    loaded = load_dataset(tmp_path / "problems.jsonl")
    said = [str(one).replace(f"{tmp_path}/", "") for one in loaded.left_out]
    assert len(loaded.problems) == 2 and len(said) == 1
    assert re.match(r"problems\.jsonl:2: line = .*(correct the line|round it)", said[0])
    reply = made(bob, cast, content)
    assert reply.status_code == 201, reply.json()
    body = reply.json()
    assert body["left_out"] == said and body["statistics"]["problems"] == 2
    page = bob.get(f"/datasets/versions/{body['id']}/").content.decode()
    assert "1 skipped" in page and html.escape(said[0]).replace("&#x27;", "&#39;") in (
        page.replace("&#x27;", "&#39;")
    )


@pytest.mark.parametrize("kind", ["torn", "no object"])
def test_a_bad_line_of_our_own_format_refuses_the_file_on_both_ways(bob, cast, tmp_path, kind):
    content = lines_of(some_problems()) + BAD_LINES[kind] + b"\n"
    (tmp_path / "problems.jsonl").write_bytes(content)
    with pytest.raises(DatasetError) as refused:
        load_dataset(tmp_path / "problems.jsonl")
    said = str(refused.value).replace(f"{tmp_path}/", "")
    reply = made(bob, cast, content)
    assert reply.status_code == 422
    assert [one["reason"] for one in reply.json()["problems"]] == [said]


def test_the_same_fault_has_the_same_words_in_every_format(tmp_path):
    words = []
    for name, good in (("own", lines_of(some_problems(1))), ("mbpp", json.dumps(rows.MBPP))):
        good = good if isinstance(good, bytes) else good.encode() + b"\n"
        (tmp_path / name).write_bytes(good + BAD_LINES["torn"])
        try:
            (issue,) = load_dataset(tmp_path / name).left_out
        except DatasetError as error:
            (issue,) = error.issues
        words.append((issue.line, issue.field, issue.value, issue.remedy))
    assert words[0] == words[1]
    assert words[0][3].startswith("is not JSON (") and words[0][3].endswith("or remove it")


def test_a_file_in_utf_16_is_refused_with_the_remedy(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(rows.MBPP), encoding="utf-16")
    with pytest.raises(DatasetError, match="UTF-16 or UTF-32; save it as UTF-8"):
        load_dataset(tmp_path / "a.jsonl")


HIDDEN_IDS = ("mill\x1b[31m", "\u202egnp", "a\u200bb", "line\nbreak", "\u3164")


@pytest.mark.parametrize("name", HIDDEN_IDS)
def test_an_id_that_is_not_visible_is_refused_with_the_remedy(tmp_path, name):
    row = {**rows.LIVECODEBENCH_CALL, "question_id": name, "question_content": "Other."}
    content = json.dumps(row) + "\n" + json.dumps(rows.LIVECODEBENCH_CALL)
    (tmp_path / "a.jsonl").write_text(content)
    loaded = load_dataset(tmp_path / "a.jsonl")
    (issue,) = loaded.left_out
    assert (issue.line, issue.field, issue.value) == (1, "id", name)
    assert "visible" in issue.remedy and str(issue).isprintable()
    (own,) = some_problems(1)
    with pytest.raises(DatasetError, match="id = "):
        save_problems(tmp_path / "own.jsonl", [replace(own, id=name)])
        load_dataset(tmp_path / "own.jsonl")


def nothing_is_left(var_directory: Path) -> None:
    assert not files_below(var_directory) and not Upload.objects.exists()
    assert not Artifact.objects.exists() and not Dataset.objects.exists()


def zstd(content: bytes) -> bytes:
    return pyarrow.compress(content, "zstd", asbytes=True)


def a_table(statements: pyarrow.Array, **options) -> bytes:
    """A parquet with rows of MBPP and these statements."""
    packed = io.BytesIO()
    times = [{**rows.MBPP, "task_id": number} for number in range(len(statements))]
    table = pyarrow.Table.from_pylist(times)
    table = table.set_column(table.column_names.index("text"), "text", statements)
    parquet.write_table(table, packed, compression="zstd", **options)
    return packed.getvalue()


def repeated(text: str, times: int) -> pyarrow.Array:
    """One text repeated `times` times, in a few bytes of a dictionary."""
    indices = pyarrow.array(np.zeros(times, dtype=np.int32))
    return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array([text]))


def with_rows(content: bytes, claimed: int) -> bytes:
    """The same parquet, whose footer claims another number of rows."""
    there = varint(1)
    head, tail = content[:4], content[4:]
    offset = tail.rindex(b"\x16" + there + b"\x19")  # FileMetaData: num_rows, then row_groups
    changed = tail[: offset + 1] + varint(claimed) + tail[offset + 2 :]
    length = int.from_bytes(content[-8:-4], "little") + len(varint(claimed)) - 1
    return head + changed[:-8] + length.to_bytes(4, "little") + b"PAR1"


def varint(number: int) -> bytes:
    """An integer as in Thrift's compact protocol."""
    left, result = number << 1, bytearray()
    while left > 127:
        result.append(left & 127 | 128)
        left >>= 7
    return bytes([*result, left])


# Small when stored and large when read.
BOMBS = {
    "gzip, one line": lambda: gzip.compress(b" " * (1 << 24)) * 256,
    "gzip, many lines": lambda: gzip.compress(b"\n" * (1 << 24)) * 256,
    "zstd, one line": lambda: zstd(b" " * (1 << 26)) * 64,
    "zstd, many lines": lambda: zstd(b"\n" * (1 << 26)) * 64,
    "parquet, pages": lambda: a_table(pyarrow.array(["x" * (1 << 27)]), use_dictionary=False),
    "parquet, a dictionary": lambda: a_table(repeated("x" * (1 << 20), 1 << 12)),
}


@pytest.mark.parametrize("name", large_but(["gzip, one line"], BOMBS))
def test_a_decompression_bomb_is_contained_by_the_parser_process(
    bob, cast, var_directory, settings, name
):
    settings.DATASET_READ_BYTES, settings.DATASET_READ_SECONDS = 512 << 20, 3
    bomb = BOMBS[name]()
    assert len(bomb) < 5 << 20
    refusal = made(bob, cast, bomb)
    assert refusal.status_code == 422, refusal.json()
    body = refusal.json()["problems"][0]["reason"]
    assert re.search("split it|cannot be read|too long|too large", body), body
    nothing_is_left(var_directory)


@pytest.mark.parametrize("claimed", large_but([2**40], [2**40, 2**62]))
def test_rows_that_a_parquet_only_claims_take_nothing(bob, cast, var_directory, settings, claimed):
    settings.DATASET_READ_BYTES, settings.DATASET_READ_SECONDS = 512 << 20, 20
    whole = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist([rows.MBPP]), whole)
    assert parquet.ParquetFile(io.BytesIO(with_rows(whole.getvalue(), 1))).metadata.num_rows == 1
    lying = with_rows(whole.getvalue(), claimed)
    assert parquet.ParquetFile(io.BytesIO(lying)).metadata.num_rows == claimed
    answer = made(bob, cast, lying)
    if answer.status_code == 201:  # the reader used the actual rows
        assert answer.json()["statistics"]["problems"] == 1
    else:
        assert answer.status_code == 422 and answer.json()["problems"][0]["reason"]
        nothing_is_left(var_directory)


def test_a_model_is_measured_on_any_version(bob, cast, tmp_path):
    oak = {"oak": a_model_directory(tmp_path / "oak")}
    (model,) = register_starters(cast.project, oak, {})
    version = stored_version(cast, "trees", faulty=2)
    address = f"/api/v1/models/{model.model_id}/versions/1/evaluations"
    answer = bob.post(address, {"dataset_version": version.pk, "problems": 2}, **JSON)
    assert answer.status_code in (201, 202), answer.json()


def test_only_a_checked_and_good_version_is_trained_on(bob, cast):
    version = stored_version(cast, "trees", some_problems(4))
    expected = ProblemsConfig(dataset=version.reference, **SIZES)
    run = {"project": cast.project.pk, "recipe": "demo"}
    run["overrides"] = {f"problems.{name}": size for name, size in SIZES.items()}
    run["overrides"]["problems.dataset"] = version.reference

    def refusal() -> dict:
        answer = bob.post("/api/v1/runs", run, **JSON)
        assert answer.status_code == 409
        (problem,) = answer.json()["problems"]
        return problem

    assert "is not checked yet" in refusal()["reason"]
    names = [one.problem for one in version.problems.order_by("number")]
    checked(version, failed=names[:1])
    result = refusal()
    assert result["path"] == "problems.dataset" and result["value"] == "dataset:trees/1"
    assert "1 problem fails its own tests" in result["reason"]
    form = {"project": cast.project.pk, "recipe": "demo"}
    form["overrides"] = f'problems.dataset = "{version.reference}"\n'
    page = bob.post("/runs/new/", form)
    assert page.status_code == 422 and "fails its own tests" in page.content.decode()
    checked(version)
    assert version_of(cast.project, expected) == version
    made_run = bob.post("/api/v1/runs", run, **JSON)
    assert made_run.status_code == 201, made_run.json()
    uses = bob.get(f"/api/v1/datasets/versions/{version.pk}/uses").json()["uses"]
    assert [use["what"] for use in uses] == ["run"]
    assert version.reference in bob.get("/runs/new/").content.decode()


@pytest.mark.parametrize("name", ["trees/2", "elms/1", "trees", "trees/x", "../trees/1", "\0/1"])
def test_only_versions_of_the_project_are_named(cast, var_directory, name):
    stored_version(cast, "trees", some_problems(4), faulty=0)
    with pytest.raises(ConfigError, match="is no version of a dataset in Oaks") as refusal:
        version_of(cast.project, ProblemsConfig(dataset=f"dataset:{name}", **SIZES))
    assert "dataset:trees/1" in str(refusal.value)


def test_the_engine_gets_the_stored_file(cast, var_directory):
    version = stored_version(cast, "trees", some_problems(4), faulty=0)
    config = {"problems": {"dataset": version.reference, "format": "auto", **SIZES}}
    problems = for_engine(config, version)["problems"]
    assert problems["dataset"] == str(local_path(version.artifact_id))
    result = load_problem_set(ProblemsConfig(**problems))
    assert len(result.train) == 2 and config["problems"]["dataset"] == version.reference


def test_splits_are_those_of_a_run(bob, cast):
    version = stored_version(cast, "trees", some_problems(6), faulty=0)
    sizes = {"train": 3, "validation": 1, "test": 2, "seed": 5}
    body = bob.get(f"/api/v1/datasets/versions/{version.pk}/splits", sizes).json()
    path = str(local_path(version.artifact_id))
    ours = load_problem_set(ProblemsConfig(dataset=path, **sizes))
    names = dict(version.problems.values_list("number", "problem"))
    assert {split: [names[n] for n in numbers] for split, numbers in body.items()} == {
        split: [problem.id for problem in getattr(ours, split)] for split in body
    }


def test_problems_that_pass_become_a_version_with_its_parent(bob, cast):
    version = stored_version(cast, "trees", some_problems(4))
    path = f"/api/v1/datasets/versions/{version.pk}/derive"
    assert bob.post(path, {}, **JSON).status_code == 409
    names = [one.problem for one in version.problems.order_by("number")]
    checked(version, failed=names[:1], unverified=names[1:2])
    for keep, count in (("passed", 2), ("not-failed", 3)):
        body = bob.post(path, {"keep": keep}, **JSON).json()
        assert (body["parent"], body["statistics"]["problems"]) == (version.pk, count)
    assert bob.delete(f"/api/v1/datasets/versions/{version.pk}").status_code == 409


def test_a_used_dataset_is_kept_and_an_unused_one_leaves_nothing(bob, cast, var_directory):
    version = stored_version(cast, "trees", faulty=0)
    run = a_run(cast, dataset_version=version)
    path = f"/api/v1/datasets/versions/{version.pk}"
    refusal = bob.delete(path)
    assert refusal.status_code == 409 and "run Shade #1" in refusal.json()["problems"][0]["reason"]
    assert bob.delete(f"/api/v1/datasets/{version.dataset_id}").status_code == 409
    run.delete()
    assert bob.delete(path).status_code == 204
    nothing_is_left(var_directory)


def test_private_objects_are_named_to_nobody_else(bob, cast):
    hidden = create_project(
        cast.project.workspace, "Hidden", "hidden", Visibility.PRIVATE, cast.alice
    )
    version = stored_version(cast, "open")
    secret = stored_version(replace(cast, project=hidden), "secret-name", some_problems(2, seed=7))
    overlap = reports.request_overlap(version, secret, 0.5, cast.alice).pk
    DatasetVersion.objects.filter(pk=secret.pk).update(parent=version)
    address, rest = f"/datasets/versions/{version.pk}/", f"/api/v1/datasets/versions/{version.pk}"

    def reply() -> list[str]:
        requested = [bob.get(address), bob.get(f"{rest}/uses"), bob.delete(rest)]
        return [answer.content.decode() for answer in requested]

    of_overlap = f"/datasets/reports/{overlap}/", f"/api/v1/datasets/reports/{overlap}"
    assert not [text for text in reply() if "secret-name" in text]
    assert [bob.get(path).status_code for path in of_overlap] == [404, 404]
    assert bob.post(f"{of_overlap[1]}/cancel").status_code == 404
    assert "it is used by 1 more" in reply()[-1]
    bob.force_login(cast.alice)
    assert all("secret-name" in text for text in reply())
    assert [bob.get(path).status_code for path in of_overlap] == [200, 200]


def test_problems_are_searched_filtered_and_paged(bob, cast):
    version = stored_version(cast, "trees", some_problems(5))
    names = [one.problem for one in version.problems.order_by("number")]
    checked(version, failed=names[2:3])
    path = f"/api/v1/datasets/versions/{version.pk}/problems"
    first = bob.get(path, {"limit": 2}).json()
    second = bob.get(path, {"limit": 2, "cursor": first["next"]}).json()
    assert [one["number"] for one in first["problems"] + second["problems"]] == [1, 2, 3, 4]
    (failed,) = bob.get(path, {"check": "failed"}).json()["problems"]
    assert failed["number"] == 3 and "50% of its tests pass" in failed["check_reason"]
    (actual,) = bob.get(path, {"q": names[4]}).json()["problems"]
    assert actual["number"] == 5
    assert bob.get(path, {"q": "nowhere-in-it"}).json()["problems"] == []
    assert bob.get(path, {"cursor": 2**63 - 1}).json()["problems"] == []
    page = bob.get(f"/datasets/versions/{version.pk}/", {"check": "failed"}).content.decode()
    assert "expected 1, got 2" in page and names[0] not in page


def test_the_difficulty_of_a_problem_comes_from_programs_of_runs(bob, cast):
    version = stored_version(cast, "trees", faulty=0)
    easy, hard, _ = version.problems.order_by("number").values_list("problem", flat=True)
    run, fencing = a_held_run(cast)
    Run.objects.filter(pk=run.pk).update(dataset_version=version)
    closed = {
        "program": "x",
        "score": 1.0,
        "fraction": 1.0,
        "tests": [],
        "tokens": 1,
        "stop": "eos",
    }
    closed |= {"mean_logprob": -1.0, "policy_version": 0, "seconds": 0.1}
    events = []
    for problem, verdict in ((easy, "passed"), (hard, "wrong_answer"), (hard, "sandbox_failure")):
        tree = len(events) + 1
        reply = {"step": 1, "problem": problem, "statement": "s"}
        opened = {"agent": "oak", "parent": 0, "depth": 1, "draws": {}}
        events += [
            an_event(tree, "tree.open", tree=tree, **reply),
            an_event(tree + 1, "node.open", tree=tree, node=1, **opened),
            an_event(tree + 2, "node.close", tree=tree, node=1, verdict=verdict, **closed),
        ]
    ingest(run.pk, fencing, events)
    reply = bob.get(f"/api/v1/datasets/versions/{version.pk}/difficulty").json()
    assert reply["runs"] == 1
    counts = [(one["problem"], one["tried"], one["passed"]) for one in reply["problems"]]
    assert counts == [(hard, 1, 0), (easy, 1, 1)], (
        "the hardest first; what failed technically is out"
    )


def test_workspaces_take_turns_however_many_reports_one_has_queued(cast, var_directory):
    mine = [stored_version(cast, name=f"mine-{number}") for number in range(4)]
    workspace = cast.charlie.memberships.get().workspace
    other = create_project(workspace, "Elms", "elms", created_by=cast.charlie)
    theirs = stored_version(replace(cast, project=other, bob=cast.charlie), name="theirs")
    requested = [reports.request_validation(one, cast.bob).pk for one in mine]
    late = reports.request_validation(theirs, cast.charlie).pk
    taken = [reports.take_report().pk for _ in range(2)]
    assert taken == [requested[0], late]
    again = [
        reports.request_overlap(theirs, theirs, share, cast.charlie).pk for share in (0.5, 0.6)
    ]
    order = [reports.take_report().pk for _ in range(5)]
    assert order == [requested[1], again[0], requested[2], again[1], requested[3]]


def test_a_user_with_runs_in_many_workspaces_has_one_turn(cast, var_directory):
    versions = []
    for number in range(3):
        workspace = create_workspace(f"W{number}", f"w{number}", cast.bob)
        project = create_project(workspace, "P", f"p{number}", created_by=cast.bob)
        versions.append(stored_version(replace(cast, project=project), name="same"))
    requested = [reports.request_validation(one, cast.bob).pk for one in versions]
    assert reports.take_report().pk == requested[0]
    alices = reports.request_validation(stored_version(cast), cast.alice).pk
    assert [reports.take_report().pk for _ in range(3)] == [alices, requested[1], requested[2]]


def test_a_report_of_a_lost_worker_is_retried_then_failed(cast, var_directory):
    version = stored_version(cast)
    reports.request_validation(version, cast.bob)
    assert reports.request_validation(version, cast.bob).pk == DatasetReport.objects.get().pk
    for _ in range(reports.MOST_ATTEMPTS):
        lost = reports.take_report()
        assert reports.take_report() is None
        DatasetReport.objects.update(lease_expires="2020-01-01T00:00Z")
    assert reports.take_report() is None
    assert DatasetReport.objects.get().state == "failed"
    with pytest.raises(reports.ReportLost):
        reports.complete_validation(lost, {"failed": [], "unverified": []})
    assert not DatasetProblem.objects.exclude(check_state="open").exists()


def test_a_report_whose_leases_lapse_names_the_setting(cast, var_directory, monkeypatch):
    monkeypatch.setenv("GROVE_JOB_LEASE_SECONDS", "0.001")
    reports.request_validation(stored_version(cast), cast.bob)
    for _ in range(reports.MOST_ATTEMPTS):
        taken = eventually(reports.take_report, "the last lease to lapse", 10)
        assert taken.lease_expires - taken.started == timedelta(milliseconds=1)

    def failed():
        assert reports.take_report() is None
        return DatasetReport.objects.get().state == "failed"

    eventually(failed, "the report to fail", 10)
    assert DatasetReport.objects.get().error == (
        "its workers were lost repeatedly; on a busy machine raise GROVE_JOB_LEASE_SECONDS or "
        "GROVE_PATIENCE"
    )


def test_the_time_of_a_report_grows_with_its_problems_up_to_the_limit(
    cast, var_directory, monkeypatch, settings
):
    report = reports.request_validation(stored_version(cast), cast.bob)
    problems = report.version.statistics["problems"]
    monkeypatch.setenv("GROVE_PATIENCE", "3")
    assert reports.seconds_for(report) == 3 * (120 + 20 * problems)
    assert reports.late_remedy(report) == "raise GROVE_PROBLEM_CHECK_SECONDS or GROVE_PATIENCE"
    settings.DATASET_CHECK_SECONDS = 60.0
    assert reports.seconds_for(report) == 60.0
    assert reports.late_remedy(report) == "raise GROVE_CHECK_MINUTES"


@pytest.mark.django_db(transaction=True)
def test_no_more_than_some_are_read_at_once(bob, cast):
    with psycopg.connect(**connection.get_connection_params()) as others:
        for index in range(parse.QUEUE.slots):
            others.execute("SELECT pg_advisory_xact_lock(%s, %s)", [parse.QUEUE.lock, index])
        waiting = made(bob, cast)
    assert waiting.status_code == 202 and waiting.json()["place"] == 1


@pytest.mark.parametrize("where", ["row", "list", "nested", "literal"])
def test_a_number_of_a_million_digits_is_refused_with_its_row_and_field(bob, cast, where):
    number, row = "-" + "7" * 10**6, json.loads(GOOD.splitlines()[0])
    if where == "nested":
        tests = json.dumps({"inputs": [[1]], "outputs": ["N"], "fn_name": "f"})
        row = {**rows.APPS_CALL, "input_output": tests.replace('"N"', number)}
        line = json.dumps(row).encode()
    elif where == "literal":
        row["public_tests"] = [{"arguments": [1], "expected_literal": number}]
        line = json.dumps({**row, "id": "other"}).encode()
    else:
        row["public_tests"] = [{"arguments": [1], "expected": "N"}]
        line = json.dumps({**row, "id": "other"}).replace('"N"', number).encode()
    first = json.dumps(rows.APPS_CALL).encode() if where == "nested" else GOOD.splitlines()[0]
    content = b"[" + first + b"," + line + b"]" if where == "list" else first + b"\n" + line
    answer = made(bob, cast, content)
    if where == "nested":  # a fault of its row
        assert answer.status_code == 201 and answer.json()["statistics"]["problems"] == 1
        (reason,) = answer.json()["left_out"]
        assert ":2: input_output" in reason and "1,000,000 digits (10,000 at most) in" in reason
        return
    assert answer.status_code == 422 and not DatasetVersion.objects.exists()
    reason = answer.json()["problems"][0]["reason"]
    if where == "literal":
        assert ":2: public_tests[0].expected" in reason and "hexadecimal" in reason
        return
    field = "[1].public_tests[0].expected" if where == "list" else "public_tests[0].expected"
    assert "1,000,000 digits" in reason and f"in {field}; round it" in reason
    assert where == "list" or "problems.jsonl:2: " in reason
