"""Tests of TensorBoard's files as runs: imported and followed, each record once, whatever cuts the
import off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.extras import of_extra
from tests.helpers.waiting import eventually
from tests.packaging.builds import ROOT
from tests.webapp.client.imports.event_files import event, hparams, scalar, text, write
from webapp.client.cli import main
from webapp.client.imports.following import Copy
from webapp.client.imports.whole import Target
from webapp.experiments.models import Run
from webapp.telemetry.models import Event
from webapp.telemetry.selectors import folded


def losses(run):
    events = Event.objects.filter(run=run, kind="metric.logged").order_by("seq")
    return [(one.payload["step"], one.payload["numbers"]["loss"]) for one in events
            if "loss" in one.payload.get("numbers", ())]  # fmt: skip


def copied(count):
    return Run.objects.exists() and len(losses(Run.objects.get())) == count


@pytest.fixture
def command(here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        return main(["import-tensorboard", "boards", *words])

    return run


def loss(step):
    return event(step, scalar("loss", 2.0**-step), time=1000.0 + step)


def test_files_become_runs_once_and_what_is_added_is_added(command, tmp_path, capsys):
    folder = tmp_path / "boards" / "seed-1"
    path = write(folder, loss(0), loss(1), event(1, hparams(lr=0.5), text("note", "x")))
    assert command() == 0
    run = Run.objects.get()
    assert (run.state, run.step, run.experiment.name) == ("finished", 1, "seed-1")
    assert run.tracking.config == {"lr": 0.5}
    first = Event.objects.filter(run=run, kind="metric.logged").order_by("seq")[0]
    assert first.time.timestamp() == 1000.0
    head = run.head_seq
    assert command() == 0 and Run.objects.get().head_seq == head
    write(folder, loss(2)[:-1])
    assert command() == 0 and copied(2)  # its writer is at work
    write(folder, loss(2)[-1:])
    write(folder, loss(3), b"x" * 40, name="events.out.tfevents.2.resumed")
    capsys.readouterr()
    assert command() == 1
    assert f"{path.name[:-6]}2.resumed: record 2 is damaged" in capsys.readouterr().err
    assert losses(run) == [(step, 2.0**-step) for step in range(4)]
    assert Run.objects.get().state == "finished"
    (tmp_path / "logs").rename("lost")
    capsys.readouterr()
    assert command() == 1
    assert "does not say how far" in capsys.readouterr().err and Run.objects.count() == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["none"], "grove: none: there is no such directory"),
        (["."], "there is no event file (*tfevents*) in it or below"),
        ([".", "--idle", "0"], "--idle 0: give a number of seconds above 0"),
        ([".", "--idle", "nan"], "--idle nan: give a number of seconds above 0"),
    ],
)
def test_what_is_no_folder_of_event_files_is_refused(tmp_path, monkeypatch, capsys, words, reason):
    monkeypatch.chdir(tmp_path)
    assert main(["import-tensorboard", *words]) == 1
    assert reason in capsys.readouterr().err


@pytest.mark.large
def test_an_import_that_was_cut_off_before_its_first_record_goes_on(command, here, tmp_path):
    write(tmp_path / "boards", loss(1))
    spools = tmp_path / "spools"
    begun = Copy("tensorboard", Path("boards"), "boards", "boards", Target(), spools)
    begun.run = begun._started()
    begun.finish()
    assert command("--spools", str(spools)) == 0 and copied(1)


@pytest.mark.large
def test_a_follower_that_is_killed_goes_on_where_it_was(command, here, tmp_path):
    folder = tmp_path / "boards"
    folder.mkdir()
    words = ["import-tensorboard", str(folder), "--follow"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    follower = subprocess.Popen(
        [sys.executable, "-m", "webapp.client", *words], cwd=tmp_path, env=environment
    )
    try:
        for step in range(3):
            write(folder, loss(step))
            eventually(lambda count=step + 1: copied(count), "the record")
    finally:
        follower.send_signal(signal.SIGKILL)
        follower.wait(30)
    for step in range(3, 6):
        write(folder, loss(step))
    assert command("--idle", "1.5") == 0
    assert losses(Run.objects.get()) == [(step, 2.0**-step) for step in range(6)]
    assert Run.objects.get().state == "finished"


@pytest.mark.large
def test_what_its_own_writers_write_is_read(command, tmp_path):
    of_extra("tensorboard", "peers")
    import numpy as np
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter("boards") as writer:
        for step in range(3):
            writer.add_scalar("loss", 2.0**-step, step, new_style=step == 1)
        writer.add_scalar("bad", float("nan"), 5)
        writer.add_histogram("weights", np.array([1.0, 2.0, 2.0, 3.0]), 5)
        writer.add_text("note", "a *text*", 5)
        writer.add_image("picture", np.zeros((1, 2, 2)), 5)
        writer.add_hparams({"lr": 0.5, "kind": "adam"}, {"best": 2.0}, run_name="hparams")
    assert command() == 0
    run, other = sorted(Run.objects.all(), key=lambda one: one.experiment.name)
    assert losses(run) == [(step, 2.0**-step) for step in range(3)]
    logged = folded(run)["logged"]
    assert logged["nonfinite"]["bad"]["value"] == "nan"
    assert sum(logged["histograms"]["weights"]["value"]["counts"]) == 4
    assert logged["texts"]["note/text_summary"]["value"] == "a *text*"
    assert logged["texts"]["picture"]["value"] == "not kept: images"
    assert other.tracking.config == {"lr": 0.5, "kind": "adam"}
