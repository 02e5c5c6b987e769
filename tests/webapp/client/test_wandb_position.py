"""Tests of where a mirror in W&B goes on, without its package: its runs and files are built."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.webapp.client.imports.test_wandb_folder import row, run, write
from webapp.client.mirrors.wandb_position import offline_head, online_head


@dataclass(frozen=True)
class BegunRun:
    """W&B's run after `wandb.init`; `step` is 0 until something is logged."""

    resumed: bool = True
    starting_step: int = 0
    step: int = 0


@pytest.mark.parametrize(
    ("begun", "head"),
    [
        (BegunRun(resumed=False), 0),
        (BegunRun(starting_step=26), 25),
        (BegunRun(starting_step=26, step=31), 30),
        (BegunRun(step=26), 25),
        (BegunRun(), 0),
    ],
)
def test_a_run_that_w_and_b_resumes_says_its_last_step_before_the_first_row(begun, head):
    assert online_head(begun) == head


def test_files_on_this_machine_say_the_last_step_of_all_runs_of_this_id(tmp_path):
    assert offline_head(tmp_path / "wandb", "grove-x") == 0
    first, second, other = (tmp_path / "wandb" / f"offline-run-{n}" for n in (1, 2, 3))
    write(first / "run-grove-x.wandb", run(), row(3, a=1.0), row(7, a=2.0))
    write(second / "run-grove-x.wandb", run(), row(12, a=1.0))
    write(other / "run-grove-y.wandb", run(), row(99, a=1.0))
    assert offline_head(tmp_path / "wandb", "grove-x") == 12
