"""Tests of histories of W&B, as its API exports them: a run, or a refusal that names the line."""

from __future__ import annotations

import pytest

from tests.webapp.client.conftest import tracked
from webapp.client.cli import main
from webapp.client.imports.wandb_history import BadHistory, run_of_history
from webapp.experiments.models import Run
from webapp.telemetry.models import Metric


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b\n1,2\n", "history.csv, line 1: it has a, b; give a history with a column _step"),
        ("_step,a\n0,1\nx,2\n", "history.csv, line 3: _step = 'x': give a number"),
        ("_step,a\n-1,1\n", "history.csv, line 2: _step = '-1': give a whole number from 0"),
        ("_step,a\n1,2,3\n", "history.csv, line 2: it has other columns than line 1"),
        ("_step,_timestamp\n1,nan\n", "line 2: _timestamp = 'nan': give a number"),
    ],
)
def test_a_table_that_is_no_history_is_named_by_its_line(tmp_path, text, reason):
    (tmp_path / "history.csv").write_text(text)
    with pytest.raises(BadHistory) as refusal:
        run_of_history(tmp_path / "history.csv")
    assert reason in str(refusal.value)


def test_a_history_of_wandb_is_a_run(tmp_path):
    (tmp_path / "h.csv").write_text(",_step,_timestamp,loss,note\n0,0,10.5,2.5,\n1,4,11,,x\n")
    assert run_of_history(tmp_path / "h.csv").rows == [
        (10.5, 0, {"loss": 2.5}), (11.0, 4, {"note": "x"}),
    ]  # fmt: skip


def test_a_cell_may_be_long(tmp_path):
    """A table or a completion: more than the 131,072 characters that `csv` reads by itself."""
    (tmp_path / "h.csv").write_text(f'_step,sample\n3,"{"x" * 200_000}"\n')
    (row,) = run_of_history(tmp_path / "h.csv").rows
    assert len(row[2]["sample"]) == 200_000


@pytest.mark.large
def test_a_history_is_imported_once(here, tmp_path):
    file = tmp_path / "night.csv"
    file.write_text("_step,_timestamp,train/loss,note\n0,10.5,2.5,\n4,11,1.5,x\n")
    for _ in range(2):
        assert main(["import-wandb", str(file)]) == 0
    run = tracked("wandb-night")
    assert (run.state, run.step, Run.objects.count()) == ("finished", 4, 1)
    series = Metric.objects.get(run=run, name="logged.train~1loss")
    assert (series.points, series.value) == (2, 1.5)
