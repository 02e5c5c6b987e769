"""Tests of MLflow's stores, read without its library: a folder of files, a database."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing

import pytest

from webapp.client.imports.mlflow_store import BadStore, runs

# As in MLflow 3.17; columns that are not read are left out.
SCHEMA = """
CREATE TABLE experiments (experiment_id INTEGER PRIMARY KEY, name TEXT, lifecycle_stage TEXT);
CREATE TABLE runs (run_uuid TEXT, name TEXT, status TEXT, start_time BIGINT,
                   lifecycle_stage TEXT, experiment_id INTEGER);
CREATE TABLE metrics (key TEXT, value FLOAT, timestamp BIGINT, run_uuid TEXT, step BIGINT,
                      is_nan BOOLEAN);
CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);
CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);
"""


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "ml flow.db"
    with closing(sqlite3.connect(path)) as store:
        store.executescript(SCHEMA)
        store.executemany("INSERT INTO experiments VALUES (?, ?, ?)",
                          [(1, "sums", "active"), (2, "gone", "deleted")])  # fmt: skip
        store.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, 1)", [
            ("b", "second", "FAILED", 2000, "active"), ("a", "first", "FINISHED", 1000, "active"),
            ("c", None, "RUNNING", 3000, "active"), ("d", "gone", "FINISHED", 4000, "deleted"),
        ])  # fmt: skip
        store.executemany("INSERT INTO metrics VALUES (?, ?, ?, 'a', ?, ?)", [
            ("train/loss", 1.0, 10_000, 0, False), ("train/loss", 0.5, 10_001, 1, False),
            ("train/loss", 0.25, 10_001, 1, False), ("bad", 0.0, 10_001, 1, True),
            ("inf", -1.7976931348623157e308, 10_001, 1, False),
        ])  # fmt: skip
        store.execute("INSERT INTO params VALUES ('lr', '0.5', 'a')")
        store.executemany("INSERT INTO tags VALUES (?, ?, 'a')", [
            ("team", "oak"), ("mlflow.note.content", "a note"), ("mlflow.user", "u"),
        ])  # fmt: skip
        store.commit()
    return path


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "mlruns"
    for name, content in {
        "1/meta.yaml": "experiment_id: '1'\nlifecycle_stage: active\nname: sums\n",
        "2/meta.yaml": "lifecycle_stage: deleted\nname: gone\n",
        "1/a/meta.yaml": "end_time: null\nlifecycle_stage: active\nrun_name: 'it''s: a long\n"
                         "  name'\nstart_time: 1000\nstatus: 3\n",
        "1/a/metrics/train/loss": "10000 1.0 0\n10001 0.5 1\n10001 0.25 1\n",
        "1/a/metrics/bad": "10001 nan 1\n",
        "1/a/params/lr": "0.5",
        "1/a/tags/team": "oak", "1/a/tags/mlflow.note.content": "a note",
        "1/b/meta.yaml": 'lifecycle_stage: active\nrun_name: "s\\u00e9"\nstart_time: 2000\n'
                         "status: 4\n",
        "1/c/meta.yaml": "lifecycle_stage: active\nrun_name: third\nstart_time: 3000\nstatus: 1\n",
        "1/d/meta.yaml": "lifecycle_stage: deleted\nstart_time: 4000\nstatus: 3\n",
    }.items():  # fmt: skip
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    return root


def first_is_whole(run):
    assert (run.id, run.state, run.start, run.notes) == ("a", "finished", 1.0, "a note")
    assert run.config == {"lr": "0.5", "tags": {"team": "oak"}}
    assert [(at, step, values.get("train/loss")) for at, step, values in run.rows] == [
        (10.0, 0, 1.0), (10.001, 1, 0.5), (10.001, 1, 0.25),
    ]  # fmt: skip
    assert math.isnan(run.rows[1][2]["bad"])


def test_a_folder_is_read(folder):
    first, second, third = runs(f"file:{folder}", "sums")
    first_is_whole(first)
    assert (first.name, second.name, second.state) == ("it's: a long name", "sé", "failed")
    assert third == "third is running: import it once it has ended"


def test_a_database_is_read(database):
    first, second, third = runs(f"sqlite:///{database}", "sums")
    first_is_whole(first)
    assert first.rows[1][2]["inf"] == -math.inf
    assert (first.name, second.state) == ("first", "failed")
    assert third == "c is running: import it once it has ended"


def test_a_broken_metric_is_named_and_the_others_are_read(folder):
    (folder / "1/a/metrics/bad").write_text("10001 x 1\n")
    first, second, _ = runs(str(folder), "sums")
    assert "bad, line 1: '10001 x 1': this is no metric" in first and second.state == "failed"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("none", "none: there is no such folder; give that of MLflow's runs (mlruns)"),
        ("mysql://localhost/mlflow", "there is no such folder"),
        ("sqlite:///none", "none: there is no such file"),
        ("sqlite:///other", "file is not a database"),
        ("empty", "--experiment 'sums': empty has none"),
    ],
)
def test_what_is_no_store_is_refused(tmp_path, monkeypatch, source, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").write_bytes(b"no database, but long enough to be none")
    with pytest.raises(BadStore) as refusal:
        list(runs(source, "sums"))
    assert reason in str(refusal.value)


def test_an_experiment_that_is_not_there_is_named_with_those_that_are(folder):
    with pytest.raises(BadStore, match=r"--experiment 'gone': .* has sums"):
        list(runs(str(folder), "gone"))
