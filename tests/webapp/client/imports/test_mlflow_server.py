"""Tests of runs read from an MLflow server: all pages, its artifacts, and what goes wrong."""

from __future__ import annotations

import math

import pytest

from tests.webapp.client.conftest import tracked
from tests.webapp.client.imports.mlflow_answers import API, Mlflow, serving
from webapp.client.cli import main
from webapp.client.imports import mlflow_server
from webapp.client.imports.mlflow_store import runs
from webapp.client.imports.stores import BadStore
from webapp.experiments.models import Run
from webapp.telemetry.selectors import folded

LOSS = [{"key": "loss", "value": 1 / (n + 1), "timestamp": 10_000 + n, "step": n} for n in range(5)]


@pytest.fixture
def mlflow(monkeypatch):
    for name in ("USERNAME", "PASSWORD", "TOKEN"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    # A proxy that refuses everything: a server of this machine is never reached through it.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    made = Mlflow()
    made.experiments += [{"experiment_id": str(n), "name": f"other {n}"} for n in range(2, 5)]
    made.experiments.append({"experiment_id": "1", "name": "sums"})
    return made


@pytest.fixture
def address(mlflow):
    with serving(mlflow) as address:
        yield address


def test_runs_points_and_artifacts_of_all_pages_are_read(mlflow, address):
    bad = {"key": "bad", "value": "NaN", "timestamp": "10002", "step": "2"}
    ids = [mlflow.add_run(f"r{n}", {"loss": LOSS, "bad": [bad]}) for n in range(3)]
    mlflow.add_run("live", {}, status="RUNNING")
    mlflow.files = {
        "model.bin": b"\0" * 9,
        "notes.md": b"it *learns*",
        "deep/er/one.json": b"{}",
        "deep/er/two.txt": b"2",
        "big.log": b"x" * 70_000,
    }
    *found, left_out = runs(address, "sums")
    assert [one.id for one in found] == ids and "live is running" in left_out
    one = found[0]
    losses = [(at, step, row["loss"]) for at, step, row in one.rows if "loss" in row]
    assert losses == [(10.0 + n / 1000, n, 1 / (n + 1)) for n in range(5)]
    assert math.isnan(next(row["bad"] for _, _, row in one.rows if "bad" in row))
    assert one.config == {"lr": "0.5", "tags": {"team": "oak"}} and one.start == 9.0
    assert "s3cret" not in str(found)
    sizes = {path: len(content) for path, content in mlflow.files.items()}
    assert one.summary == {"artifacts": sizes}
    texts = {name: x for _, _, row in one.rows for name, x in row.items() if "artifacts/" in name}
    assert texts == {
        "artifacts/notes.md": "it *learns*", "artifacts/deep/er/one.json": "{}",
        "artifacts/deep/er/two.txt": "2",
    }  # fmt: skip
    assert {method for method, path, _ in mlflow.requests if "search" not in path} == {"GET"}
    *without, _ = runs(address, "sums", artifacts=False)
    assert without[0].summary == {} and len(without) == 3


@pytest.mark.parametrize(
    "path, answer, reason",
    [
        ("experiments/search", (200, {}, b"<html>"), "no answer of MLflow's REST API 2.0"),
        ("experiments/search", (401, {}, b""), r"other credentials \(401\): set MLFLOW_TRACKING_"),
        ("experiments/search", (503, {}, b"busy"), "answered 503: busy"),
        ("experiments/search", (302, {"Location": "http://u:pw@else.where:9/x"}, b""),
         "redirected to http://else.where:9/x: give that address"),
        ("runs/search", (200, {}, b'{"runs": [{"info": {}}]}'), "runs/search is no answer"),
        ("runs/search", (200, {}, b'{"next_page_token": "0"}'), "a page comes twice"),
        ("runs/search", (200, {}, b'{"runs": [{"info": {"run_id": "a", "start_time": "x"}}]}'),
         "'x' is no number"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_of_mlflow_names_the_address(mlflow, address, path, answer, reason):
    mlflow.instead[f"{API}{path}"] = answer
    with pytest.raises(BadStore, match=reason) as refusal:
        list(runs(address, "sums"))
    assert str(refusal.value).startswith(address) and "pw" not in str(refusal.value)


def test_a_run_whose_history_or_artifacts_cannot_be_read_is_left_out_and_named(mlflow, address):
    mlflow.add_run("a", {"loss": LOSS})
    mlflow.instead[f"{API}artifacts/list"] = (500, {}, b"no such bucket")
    (left_out,) = runs(address, "sums")
    assert left_out.startswith(f"{address}: artifacts/list answered 500: no such bucket")
    assert "--no-artifacts" in left_out
    mlflow.instead[f"{API}metrics/get-history"] = (404, {}, b"gone")
    (left_out,) = runs(address, "sums", artifacts=False)
    assert "metrics/get-history answered 404: gone" in left_out


def test_an_answer_without_end_is_refused(mlflow, address, monkeypatch):
    monkeypatch.setattr(mlflow_server, "MOST_BYTES", 100)
    mlflow.instead[f"{API}experiments/search"] = (200, {}, b" " * 1000)
    with pytest.raises(BadStore, match="more than 100 bytes at once"):
        list(runs(address, "sums"))


def test_credentials_go_to_the_server_alone_and_are_never_shown(mlflow, address, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t0ken\n")
    list(runs(address, "sums"))
    assert {sent for _, _, sent in mlflow.requests} == {"Bearer t0ken"}
    mlflow.requests.clear()
    named = address.replace("http://", "http://ada:s%3Acret@")
    with pytest.raises(BadStore, match="other 2") as refusal:
        list(runs(named, "none"))
    assert "cret" not in str(refusal.value) and address in str(refusal.value)
    (sent,) = {sent for _, _, sent in mlflow.requests}
    assert sent.startswith("Basic ")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t\x01ken")
    with pytest.raises(BadStore, match="MLFLOW_TRACKING_TOKEN has a character") as refusal:
        list(runs(address, "sums"))
    assert "ken" not in str(refusal.value).replace("token", "")


def test_an_address_that_cannot_be_used_is_named_without_its_password():
    for source in ("http://", "http://ada:pa/ss@host", "http://host:port"):
        with pytest.raises(BadStore, match="address of the MLflow server") as refusal:
            list(runs(source, "sums"))
        assert "pa" not in str(refusal.value).replace("port", "")
    with pytest.raises(BadStore, match=r"^http://127\.0\.0\.1:1: no answer"):
        list(runs("http://ada:pass@127.0.0.1:1", "sums"))


@pytest.mark.large
def test_runs_of_a_server_are_imported_once(here, mlflow, address, capsys):
    run_id = mlflow.add_run("a", {"loss": LOSS})
    mlflow.files = {"notes.md": b"it *learns*", "model.bin": b"\0" * 9}
    for _ in range(2):
        assert main(["import-mlflow", address, "--experiment", "sums"]) == 0
    run = tracked(f"mlflow-{run_id}")
    assert Run.objects.count() == 1 and (run.state, run.step) == ("finished", 4)
    assert run.tracking.config == {"lr": "0.5", "tags": {"team": "oak"}}
    assert folded(run)["logged"]["texts"]["artifacts/notes.md"]["value"] == "it *learns*"
    capsys.readouterr()
    assert main(["import-mlflow", address, "--experiment", "none"]) == 1
    assert f"--experiment 'none': {address} has Default" in capsys.readouterr().err
