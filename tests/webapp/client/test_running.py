"""Tests of the tour of the guide to REST over a run that a worker is running."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.events.vocabulary import RunState
from tests.workers.test_worker import Worker
from webapp.experiments.models import Run
from workers.runs.engine_process import EngineProcess

ROOT = Path(__file__).resolve().parents[3]

TOUR = """\
RUN=$(grove start $PROJECT demo --key tour-1)
grove watch --json $RUN > watched.ndjson & watching=$!
until grep -q '"step.end"' watched.ndjson; do sleep 0.05; done
grove runs --name demo > runs.txt
grove pull $RUN log.ndjson
before=$(wc -l < log.ndjson)
grove export metrics metrics.csv --run $RUN
grove stop $RUN > stop.txt
wait $watching
grove pull $RUN log.ndjson
echo $before $(wc -l < log.ndjson) $(wc -l < watched.ndjson)
"""


@pytest.fixture
def no_engine_left(var_directory):
    """Kills what an interrupted tour left running."""
    yield
    for directory in (var_directory / "runs").glob("*"):
        if engine := EngineProcess.adopt(directory):
            engine.kill()


@pytest.mark.large
def test_the_tour_over_a_run_that_runs(site, exporter, tmp_path, var_directory, no_engine_left):
    grove = tmp_path / "grove"
    grove.write_text(f'#!/bin/sh\nexec {sys.executable} -m webapp.client "$@"\n')
    grove.chmod(0o755)
    environment = {
        **os.environ,
        **site.environment,
        "PROJECT": str(site.cast.project.pk),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    with Worker(var_directory, steps=10_000, pause=0.05):
        done = subprocess.run(
            ["timeout", "400", "bash", "-euc", TOUR], cwd=tmp_path, env=environment,
            capture_output=True, text=True,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    before, pulled, watched = map(int, done.stdout.split()[-3:])
    assert 0 < before < pulled == watched, "the second pull brings what came since"
    run = Run.objects.get()
    assert run.state == RunState.STOPPED and 0 < run.step < 10_000
    assert pulled == run.head_seq
    assert "running" in (tmp_path / "runs.txt").read_text()
    assert "reward" in (tmp_path / "metrics.csv").read_text()
