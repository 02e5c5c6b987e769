"""Tests of mirrors of a run in other trackers, each in the real library, on this machine."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import grove
from tests.helpers.extras import of_extra
from tests.packaging.builds import ROOT
from tests.webapp.client.conftest import tracked
from webapp.client import wandb_files
from webapp.client.cli import main
from webapp.client.imports import tensorboard as event_files
from webapp.client.mirrors import TRACKERS
from webapp.client.tracking.trees import Node, Tree, record_step


@pytest.fixture
def trackers(here, tmp_path, monkeypatch):
    """Each tracker stores its data below the test's folder."""
    monkeypatch.chdir(tmp_path)
    places = {
        "MLFLOW_TRACKING_URI": f"file:{tmp_path}/mlruns", "MLFLOW_ALLOW_FILE_STORE": "true",
        "TRACKIO_DIR": str(tmp_path / "trackio"), "WANDB_MODE": "offline",
        "WANDB_DIR": str(tmp_path), "WANDB_SILENT": "true",
    }  # fmt: skip
    for name, value in places.items():
        monkeypatch.setenv(name, value)
    return tmp_path


OPEN = 7
"""Id of a tree that is open when a mirror ends."""
BEGUN = [
    ("tree.open", {"step": 0, "problem": "p", "statement": "What is x?"}, None),
    ("node.open", {"agent": "oak", "parent": 0, "depth": 1, "draws": {}}, 1),
]
CLOSED = [("tree.close", {"nodes": 1, "solved": False, "mean_score": 0, "filtered": False}, None)]
NODES = [Node("x = 1", 0.5, 0.1), Node("x = 2", 1.0, 0.2, parent=1, agent="critic")]
ROWS = [[0, None, "", "What is x?", None], [1, 0, "policy", "x = 1", 0.5],
        [2, 1, "critic", "x = 2", 1.0]]  # fmt: skip


def log(key, steps, groups=0, emits=(), **init):
    with grove.init(id=key, name="A run", config={"lr": 0.5}, **init) as run:
        for step in range(groups):
            trees = [Tree("What is x?", NODES), Tree("What is y?", NODES)]
            record_step(run.emit, run.new_tree, step, trees)
            picture = grove.Image([[0, 128], [255, 64]], caption=f"of step {step}")
            run.log({"p/q": picture, "each": f"<b>{step}</b>"}, step=step)
        for step in steps:
            run.log({"train/loss": 1 / (step + 1), "odd~name": step}, step=step)
        run.log({"note": "a text", "bad": math.nan, "h": grove.Histogram([1, 2, 2], num_bins=2),
                 "t": grove.Table(columns=["a"], data=[[1.0], ["x"]])}, step=steps[-1])  # fmt: skip
        for kind, payload, node in emits:
            run.emit(kind, payload, OPEN, node)
    return str(tracked(key).pk)


def in_mlflow():
    from mlflow import MlflowClient

    client = MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("grove").experiment_id])
    assert run.data.params["lr"] == "0.5" and run.info.status == "FINISHED"
    assert math.isnan(run.data.metrics["bad"]) and "odd_name" in run.data.metrics
    assert [one.path for one in client.list_artifacts(run.info.run_id, "texts/note")]
    points = client.get_metric_history(run.info.run_id, "train/loss")
    for tree in (1, 2):
        paths = {one.path for one in client.list_artifacts(run.info.run_id, f"trees/{tree}")}
        assert paths == {f"trees/{tree}/{step}.json" for step in range(GROUPS)}
    number = run.info.experiment_id
    loaded = client.load_table(number, "trees/1/0.json", [run.info.run_id])
    assert json.loads(loaded.to_json(orient="values")) == ROWS
    table = f"tables/t/{points[-1].step}.json"
    assert client.load_table(number, table).columns.tolist() == ["a"]
    images = [Path(one.path).name for one in client.list_artifacts(run.info.run_id, "images")]
    assert run.data.tags["mlflow.loggedImages"] == "True"
    assert [one.startswith("p~q+step+0+timestamp+") for one in sorted(images)][:2] == [True, True]
    assert len(images) == 2 * GROUPS
    return [(one.step, one.value) for one in points]


def in_tensorboard():
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    (folder,) = event_files.directories(Path("grove"))
    read = EventAccumulator(str(folder), {"tensors": 0}).Reload()
    tags = read.Tags()["tensors"]
    assert {"h", "bad", "odd~name", "note", "t", "settings"} <= set(tags)
    (note,) = read.Tensors("note")
    assert make_ndarray(note.tensor_proto).item() == b"a text"
    assert make_ndarray(read.Tensors("h")[0].tensor_proto).shape == (2, 3)
    pictures = [(one.step, make_ndarray(one.tensor_proto)) for one in read.Tensors("p/q")]
    assert [(step, *one[:2]) for step, one in pictures] == [
        (step, b"2", b"2") for step in range(GROUPS)
    ]
    assert read.SummaryMetadata("p/q").plugin_data.plugin_name == "images"
    trees = [make_ndarray(one.tensor_proto).item() for one in read.Tensors("trees/1")]
    assert len(trees) == GROUPS and b"| 2 | 1 | critic | x = 2 | 1 |" in trees[0]
    points = read.Tensors("train/loss")
    return [(one.step, make_ndarray(one.tensor_proto).item()) for one in points]


def in_trackio():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BY_TRACKIO)], stdout=subprocess.PIPE, check=True,
        timeout=120,
    )  # fmt: skip
    stored = json.loads(done.stdout.splitlines()[-1])
    assert stored["config"]["lr"] == 0.5 and len(stored["runs"]) == 1
    found = [(row["step"], row) for row in stored["rows"]]
    trees = [(step, row["trees/1"]) for step, row in found if "trees/1" in row]
    assert [step for step, _ in trees] == list(range(GROUPS))
    pictures = [row["p/q"] for _, row in found if "p/q" in row]
    assert [one["caption"] for one in pictures] == [f"of step {step}" for step in range(GROUPS)]
    texts = [row["each"] for _, row in found if "each" in row]
    assert [one["_value"] for one in texts] == [
        f"```\n<b>{step}</b>\n```" for step in range(GROUPS)
    ]
    return [(step, row["train/loss"]) for step, row in found if "train/loss" in row]


# In a process of its own: Trackio reads its variables when it is imported.
BY_TRACKIO = """
    import json
    from trackio.sqlite_storage import SQLiteStorage

    (run,) = runs = SQLiteStorage.get_runs("grove")
    stored = {"rows": SQLiteStorage.get_logs("grove", run), "runs": runs,
              "config": SQLiteStorage.get_run_config("grove", run)}
    print(json.dumps(stored, default=str))
"""


def in_wandb():
    found, media = [], []
    for path in wandb_files.files(Path("wandb")):
        for one in wandb_files.records(path):
            row = wandb_files.values_of(one.message(wandb_files.HISTORY).messages(1))
            media += [(row["grove/step"], kind, row[kind]) for kind in MEDIA if kind in row]
            if "train/loss" in row:
                found.append((row["grove/step"], row["train/loss"]))
    kinds = {"trees/1": "table-file", "p/q": "image-file", "each": "html-file"}
    assert sorted((step, kind, one["_type"]) for step, kind, one in media) == sorted(
        (step, kind, kinds[kind]) for step in range(GROUPS) for kind in MEDIA
    )
    (first, *_) = [one for step, kind, one in media if (step, kind) == (0, "trees/1")]
    (file,) = Path("wandb").glob(f"offline-*/files/{first['path']}")
    assert json.loads(file.read_text())["data"][1] == ["1", "0", "policy", "x = 1", "0.5"]
    return found


MEDIA = ("trees/1", "p/q", "each")
GROUPS = 3
STORED = {
    "mlflow": in_mlflow, "tensorboard": in_tensorboard, "trackio": in_trackio, "wandb": in_wandb,
}  # fmt: skip

KILLED = """
    import os, signal, sys
    from importlib import import_module
    from webapp.client import Grove, login
    from webapp.client.mirrors.copying import mirror

    tracker = import_module(f"webapp.client.mirrors.{sys.argv[2]}").Tracker
    class Killed(tracker):
        def write(self, entries):
            super().write(entries[: len(entries) // 2 - 1])
            self.end("")  # so that a part of a batch is surely stored
            os.kill(os.getpid(), signal.SIGKILL)
    import_module(tracker.__module__).Tracker = Killed
    mirror(Grove(*login.credentials()), sys.argv[1], sys.argv[2], "grove")
"""


def test_a_mirror_follows_a_run_and_goes_on_when_it_does(trackers, capsys):
    run = log("mirrored", range(3), emits=BEGUN)
    assert main(["mirror", run, "--to", "tensorboard"]) == 0
    assert f"{run}: 5 events to tensorboard, finished" in capsys.readouterr().out
    log("mirrored", range(3, 5), emits=CLOSED, resume="must")
    assert main(["mirror", run, "--to", "tensorboard"]) == 0
    (folder,) = event_files.directories(Path("grove"))
    records = [one for path in event_files.files(folder)
               for one in event_files.EventFile(path).records()]  # fmt: skip
    (tree,) = [one.values["trees/1"].text for one in records if "trees/1" in one.values]
    assert "| 0 | None |  | What is x? | None |" in tree and "| 1 | 0 | oak |  | None |" in tree
    losses = [(one.step, one.values["train/loss"]) for one in records if "train/loss" in one.values]
    assert losses == [(step, 1 / (step + 1)) for step in range(5)]
    (trackers / "file").write_text("")
    assert main(["mirror", run, "--to", "tensorboard", "--into", "file"]) == 1
    stderr = capsys.readouterr().err
    assert "grove: tensorboard: NotADirectoryError" in stderr
    assert "The run goes on, and nothing is lost: repeat the command" in stderr


def test_a_tracker_that_is_not_installed_is_named_with_its_extra(monkeypatch, capsys):
    monkeypatch.setitem(TRACKERS, "wandb", "no_package_has_this_name")
    assert main(["mirror", "x", "--to", "wandb"]) == 2
    assert "pip install 'grove-rl[no_package_has_this_name]'" in capsys.readouterr().err


@pytest.mark.large
@pytest.mark.parametrize("tracker", STORED)
def test_a_run_is_mirrored_once_though_the_mirror_is_killed(trackers, tracker):
    of_extra(tracker, "peers")
    run = log("mirrored", range(8), GROUPS)
    command = [sys.executable, "-c", textwrap.dedent(KILLED), run, tracker]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = subprocess.run(command, env=environment, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    # In a process of its own: Trackio reads its variables when it is imported.
    again = [sys.executable, "-m", "webapp.client", "mirror", run, "--to", tracker]
    for count in (12, 0):
        done = subprocess.run(again, env=environment, timeout=120, check=True, capture_output=True)
        assert f"{run}: {count} events to {tracker}, finished" in done.stdout.decode()
    stored = sorted(STORED[tracker]())
    assert [step for step, _ in stored] == list(range(8))
    assert [value for _, value in stored] == pytest.approx([1 / (step + 1) for step in range(8)])


@pytest.mark.large
def test_half_of_a_write_to_mlflow_is_not_written_again(trackers):
    of_extra("mlflow", "peers")
    from webapp.client.mirrors import Entry, Mirrored
    from webapp.client.mirrors.mlflow import Tracker

    entries = [Entry(seq, 10.0 + seq, seq, {"loss": float(seq)}) for seq in range(1, 7)]
    run = Mirrored("r", "r", "", "grove", {})
    Tracker(run).write(entries[:2])
    cut = Tracker(run)
    assert cut.head() == 2
    cut._client.log_batch(cut._id, metrics=[_metric(one) for one in entries[2:4]])
    again = Tracker(run)
    assert again.head() == 2
    again.write(entries[2:])
    history = again._client.get_metric_history(again._id, "loss")
    assert [point.step for point in history] == [1, 2, 3, 4, 5, 6] and Tracker(run).head() == 6


def _metric(entry):
    from mlflow.entities import Metric

    return Metric("loss", entry.numbers["loss"], round(entry.time * 1000), entry.step)


ODD = ["a///b", "../x", "a/./b", "..", "/", "x" * 400, "k\u00e4se", "a\\b", " ", "a:b", "%", "a b/",
       "..x"]  # fmt: skip


@pytest.mark.large
def test_mlflow_takes_every_name_that_a_program_logs(trackers, monkeypatch):
    of_extra("mlflow", "peers")
    # Its store of files has no name that is also the beginning of another one.
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{trackers}/mlflow.db")
    from webapp.client.mirrors import Entry, Mirrored
    from webapp.client.mirrors.mlflow import Tracker

    config = {name: 1 for name in ODD}
    numbers, texts = dict.fromkeys(ODD, 0.5), {name: name for name in ODD}
    run = Mirrored("r", "r", "", "grove", config)
    first = Entry(1, 10.0, 0, numbers, texts, config={name: 2 for name in ODD})
    tracker = Tracker(run)
    tracker.write([first])
    tracker.end("finished")
    found = tracker._client.get_run(tracker._id).data
    assert len(found.metrics) >= len(ODD) - 3 and Tracker(run).head() == 1
    folders = tracker._client.list_artifacts(tracker._id, "texts")
    assert len(folders) == len(ODD), "no text replaces that of another name"


@pytest.mark.large
def test_a_tracker_that_is_gone_ends_the_mirror_and_not_the_run(trackers, monkeypatch, capsys):
    of_extra("mlflow", "peers")
    run = log("goes-on", range(2), GROUPS)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    assert main(["mirror", run, "--to", "mlflow"]) == 1
    stderr = capsys.readouterr().err
    assert "grove: mlflow: " in stderr and "The run goes on, and nothing is lost" in stderr
    assert log("goes-on", range(2, 4), resume="must") == run
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{trackers}/mlruns")
    assert main(["mirror", run, "--to", "mlflow"]) == 0
    assert [step for step, _ in in_mlflow()] == [0, 1, 2, 3]
