"""Tests of runs of MLflow and W&B, which their own libraries wrote: imported once, or named."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest

from tests.helpers.extras import of_extra
from tests.webapp.client.conftest import tracked
from webapp.client import Grove
from webapp.client.cli import main
from webapp.experiments.models import Run
from webapp.telemetry.selectors import folded

pytestmark = pytest.mark.large

LOSSES = [(0, 1.0), (1, 0.5), (2, pytest.approx(1 / 3))]


def points(here, run, name):
    with Grove(here.address, here.token) as client:
        found = client.points(str(run.pk), name)
    return list(zip(found.step, found.value, strict=True))


def test_runs_of_mlflow_are_imported_once_and_one_that_goes_on_is_named(
    here, tmp_path, monkeypatch, capsys
):
    of_extra("mlflow", "peers")
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    source = f"file:{tmp_path}/mlruns"
    client = MlflowClient(source)
    experiment = client.create_experiment("sums")
    done, failed, _ = (client.create_run(experiment, run_name=n).info.run_id for n in "abc")
    for step in range(3):
        client.log_metric(done, "train/loss", 1 / (step + 1), timestamp=10_000 + step, step=step)
    client.log_metric(done, "bad", math.nan, timestamp=10_005, step=2)
    client.log_param(done, "lr", 0.5)
    client.set_tag(done, "team", "oak")
    client.set_terminated(done, "FINISHED")
    client.set_terminated(failed, "FAILED")
    for _ in range(2):
        assert main(["import-mlflow", source, "--experiment", "sums"]) == 1
    assert "c is running: import it once it has ended" in capsys.readouterr().err
    run = tracked(f"mlflow-{done}")
    assert Run.objects.count() == 2 and tracked(f"mlflow-{failed}").state == "failed"
    assert (run.state, run.experiment.name, run.step) == ("finished", "a", 2)
    assert run.tracking.config == {"lr": "0.5", "tags": {"team": "oak"}}
    assert points(here, run, "logged.train~1loss") == LOSSES
    assert folded(run)["logged"]["nonfinite"]["bad"]["value"] == "nan"
    assert main(["import-mlflow", source]) == 0
    assert main(["import-mlflow", source, "--experiment", "none"]) == 1
    assert f"--experiment 'none': {source} has Default, sums" in capsys.readouterr().err
    client.log_metric(done, "train/loss", 0.0, timestamp=10_009, step=3)
    assert main(["import-mlflow", source, "--experiment", "sums"]) == 1
    stderr = capsys.readouterr().err
    assert "left out: a: " in stderr and "has a run of this id" in stderr
    assert run.head_seq == tracked(f"mlflow-{done}").head_seq


PROGRAM = """
import wandb
run = wandb.init(project="sums", id="abc", name="a run", config={"lr": 0.5, "deep": {"er": 1}},
                 settings=wandb.Settings(console="off", x_disable_stats=True))
for step in range(3):
    run.log({"train/loss": 1 / (step + 1), "nested": {"one": step}})
run.log({"h": wandb.Histogram(np_histogram=([1, 3], [0, 1, 2])), "note": "a text"})
run.finish()
"""


def test_runs_of_wandb_are_imported_once(here, tmp_path, capsys):
    of_extra("wandb", "peers")
    settings = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, env=settings, check=True,
                   timeout=120)  # fmt: skip
    for _ in range(2):
        assert main(["import-wandb", str(tmp_path / "wandb")]) == 0
    run = tracked("wandb-abc")
    assert (run.state, run.experiment.name, run.step) == ("finished", "a run", 3)
    assert run.tracking.config == {"lr": 0.5, "deep": {"er": 1}} and Run.objects.count() == 1
    assert points(here, run, "logged.train~1loss") == LOSSES
    assert points(here, run, "logged.nested.one") == [(0, 0), (1, 1), (2, 2)]
    logged = folded(run)["logged"]
    assert logged["histograms"]["h"]["value"] == {"edges": [0, 1, 2], "counts": [1, 3]}
    assert logged["texts"]["note"]["value"] == "a text"
    (written,) = (tmp_path / "wandb").rglob("run-abc.wandb")
    growing = tmp_path / "growing" / "run-live.wandb"
    growing.parent.mkdir()
    growing.write_bytes(written.read_bytes()[:-200])
    assert main(["import-wandb", str(growing.parent)]) == 1
    assert "is being written: import it once it has ended" in capsys.readouterr().err
    os.utime(growing, (1, 1))
    assert main(["import-wandb", str(growing.parent)]) == 0
    assert tracked("wandb-live").state == "failed"
    (tmp_path / "run-x.wandb").write_bytes(b"nothing")
    assert main(["import-wandb", str(tmp_path / "run-x.wandb")]) == 1
    assert "run-x.wandb: this is no file of W&B" in capsys.readouterr().err
