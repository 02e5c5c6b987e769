"""Tests of mirrors of a run on real servers of other trackers, and in their stores as their own
libraries read them.

MLflow runs as its own process, which is killed in the middle; W&B's client sends over HTTP to a
server of ours (`wandb_answers`), as W&B's is no package.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import pytest

import grove
from tests.helpers.extras import of_extra
from tests.helpers.waiting import eventually, patience
from tests.packaging.builds import ROOT
from tests.webapp.client.conftest import tracked
from tests.webapp.client.mlflow_process import a_mlflow_server
from tests.webapp.client.wandb_answers import Wandb, serving
from webapp.client import Grove
from webapp.client.cli import main
from webapp.client.tracking.trees import Node, Tree, record_step
from webapp.experiments.models import Run
from webapp.telemetry.selectors import folded

pytestmark = [pytest.mark.large, pytest.mark.slow]

ANSWERS = [Node("x = 1", 0.5, 0.1), Node("x = 2", 1.0, 0.2, parent=1, agent="critic")]


def step(run, number):
    """What a training says in one step: numbers, a tree, a picture, a histogram, a text."""
    record_step(run.emit, run.new_tree, number, [Tree("What is x?", ANSWERS)])
    run.log(
        {"train/loss": 1 / (number + 1), "bad": math.nan, "note": f"<b>{number}</b>",
         "pixels": grove.Image([[0, 255]], caption=f"of {number}"),
         "spread": grove.Histogram([1, 2, 2], num_bins=2)}, step=number,
    )  # fmt: skip


def mirroring(run_id, tracker, folder, **environment):
    """The command, following the run in a process of its own."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-m", "webapp.client", "mirror", run_id, "--to", tracker]
    return subprocess.Popen(
        command, env=given, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process):
    """Exit status, and both outputs."""
    stdout, stderr = process.communicate(timeout=120 * patience())
    return process.returncode, stdout, stderr


@pytest.fixture
def live(here):
    """A run of four steps so far, as its program goes on."""
    with grove.init(id="live", name="A run", config={"lr": 0.5}) as run:
        for number in range(4):
            step(run, number)
        eventually(lambda: sent(run), "the first steps on the server")
        yield run


def sent(run):
    return run._background.sender.is_complete and tracked("live").head_seq > 20


def test_a_mlflow_server_that_is_killed_and_comes_back_has_all_once(
    here, live, tmp_path, monkeypatch
):
    of_extra("mlflow", "peers")
    of_extra("flask", "peers")
    from mlflow import MlflowClient

    run_id, store = str(Run.objects.get().pk), tmp_path / "store"
    with a_mlflow_server(store) as server:
        client = MlflowClient(server.address)
        process = mirroring(run_id, "mlflow", tmp_path, MLFLOW_TRACKING_URI=server.address)
        head = Run.objects.get().head_seq
        eventually(lambda: seq_in(client) >= head - 5, "the first steps in MLflow")
        server.kill()
        for number in range(4, 8):
            step(live, number)
        status, _, stderr = ended(process)
    assert status == 1 and "grove: mlflow: " in stderr
    assert "The run goes on, and nothing is lost: repeat the command" in stderr
    assert tracked("live").state == "running"
    with a_mlflow_server(store) as server:
        environment = {"MLFLOW_TRACKING_URI": server.address}
        process = mirroring(run_id, "mlflow", tmp_path, **environment)
        live.log({"train/loss": 1 / 9}, step=8)
        live.finish()
        assert ended(process)[0] == 0
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.address)  # which load_table reads itself
        has_all_once(MlflowClient(server.address))
        # And back: what MLflow's server says becomes a run with the same numbers.
        assert main(["import-mlflow", server.address, "--experiment", "grove"]) == 0
        (back,) = Run.objects.filter(tracking__key__startswith="mlflow-")
    assert numbers(here, back) == numbers(here, tracked("live")) and len(numbers(here, back)) == 9
    assert back.tracking.config["lr"] == "0.5", "MLflow has texts alone"


def numbers(here, run, name="logged.train~1loss"):
    with Grove(here.address, here.token) as client:
        found = client.points(str(run.pk), name)
    return list(zip(found.step, found.value, strict=True))


def seq_in(client):
    """Seq of the last event that MLflow has whole; 0 before there is a run."""
    experiment = client.get_experiment_by_name("grove")
    found = client.search_runs([experiment.experiment_id]) if experiment else []
    return int(found[0].data.tags.get("grove.seq", 0)) if found else 0


def has_all_once(client):
    experiment = client.get_experiment_by_name("grove").experiment_id
    (run,) = client.search_runs([experiment])
    key = run.info.run_id
    assert run.info.status == "FINISHED" and run.data.params["lr"] == "0.5"
    losses = [(one.step, one.value) for one in client.get_metric_history(key, "train/loss")]
    assert sorted(losses) == [(number, pytest.approx(1 / (number + 1))) for number in range(9)]
    bad = client.get_metric_history(key, "bad")
    assert sorted(one.step for one in bad) == list(range(8)) and all(
        math.isnan(one.value) for one in bad
    )
    trees = [one.path for one in client.list_artifacts(key, "trees/1")]
    assert trees == [f"trees/1/{number}.json" for number in range(8)]
    images = [one.path for one in client.list_artifacts(key, "images")]
    assert len([one for one in images if one.endswith(".png")]) == 8
    table = client.load_table(experiment, "trees/1/7.json", [key])
    assert json.loads(table.to_json(orient="values"))[2] == [2, 1, "critic", "x = 2", 1.0]


def test_wandb_online_gets_each_row_once_though_its_server_goes(live, tmp_path):
    of_extra("wandb", "peers")
    run_id, wandb = str(Run.objects.get().pk), Wandb()
    with serving(wandb) as address:
        environment = {
            "WANDB_BASE_URL": address, "WANDB_API_KEY": "0" * 40, "WANDB_MODE": "online",
            "WANDB_DIR": str(tmp_path), "WANDB_SILENT": "true",
        }  # fmt: skip
        process = mirroring(run_id, "wandb", tmp_path, **environment)
        eventually(lambda: len(losses_of(wandb)) >= 4, "the first steps at W&B's server")
        wandb.is_gone = True
        for number in range(4, 8):
            step(live, number)
        eventually(lambda: wandb.refused, "a request while the server is gone")
        wandb.is_gone = False
        live.finish()
        assert ended(process)[0] == 0
        status, stdout, stderr = ended(mirroring(run_id, "wandb", tmp_path, **environment))
    assert status == 0, stderr
    assert f"{run_id}: 0 events to wandb, finished" in stdout
    assert losses_of(wandb) == [(number, pytest.approx(1 / (number + 1))) for number in range(8)]
    assert json.loads(wandb.config)["lr"]["value"] == 0.5 and wandb.exit_code == 0
    kinds = {row["trees/1"]["_type"] for row in wandb.rows if "trees/1" in row}
    assert kinds == {"table-file"} and len(wandb.files) >= 8


def test_an_offline_run_of_wandb_is_read_by_its_own_sync_and_comes_back(here, live, tmp_path):
    of_extra("wandb", "peers")
    live.finish()
    run, wandb = Run.objects.get(), Wandb()
    offline = {"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path), "WANDB_SILENT": "true"}
    assert ended(mirroring(str(run.pk), "wandb", tmp_path, **offline))[0] == 0
    (folder,) = (tmp_path / "wandb").glob("offline-run-*")
    with serving(wandb) as address:
        environment = {
            **os.environ, "WANDB_BASE_URL": address, "WANDB_API_KEY": "0" * 40,
            "WANDB_DIR": str(tmp_path),
        }  # fmt: skip
        command = [sys.executable, "-m", "wandb", "sync", "--yes", str(folder)]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True,
            timeout=120 * patience(),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert losses_of(wandb) == [(number, pytest.approx(1 / (number + 1))) for number in range(4)]
    for _ in range(2):
        assert main(["import-wandb", str(folder)]) == 0
    (back,) = Run.objects.filter(tracking__key__startswith="wandb-")
    assert numbers(here, back) == numbers(here, run) and back.tracking.config["lr"] == 0.5
    tables = folded(back)["logged"]["tables"]
    assert tables["trees/1"]["value"]["rows"][2] == ["2", "1", "critic", "x = 2", "1.0"]
    assert "pixels" in folded(back)["logged"]["images"]


def losses_of(wandb):
    return [(row["grove/step"], row["train/loss"]) for row in wandb.rows if "train/loss" in row]
