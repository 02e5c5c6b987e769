"""Progress of a run towards the bound that ends it, steps or minutes of training. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from engine.events.vocabulary import RunState
from webapp.experiments.models import Run


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Progress as a share and a text. Invariant: `share` is in [0, 1], and 1 for a finished run."""

    share: float
    text: str
    """For example "204 of 1000 steps", or where minutes end it "4.2 of 6 min, 204 steps"."""


def progress_of(run: Run, minutes: float | None) -> RunProgress | None:
    """Returns the progress; None before the run has planned its steps.

    `minutes` limits its training, if set. The bound that is nearer counts, as in
    `static/js/run/estimate.js` and `engine.training.progress`.
    """
    if not run.steps:
        return None
    by_steps = run.step / run.steps
    spent = (run.result.get("training_seconds") or 0.0) / 60
    by_minutes = spent / minutes if minutes else 0.0
    text = f"{run.step} of {run.steps} steps"
    if minutes and by_minutes > by_steps:
        # The last step may end beyond the limit.
        text = f"{min(spent, minutes):.1f} of {minutes:g} min, {_steps(run.step)}"
    share = 1.0 if run.state == RunState.FINISHED else min(1.0, max(by_steps, by_minutes))
    return RunProgress(share, text)


def _steps(count: int) -> str:
    return f"{count} step" if count == 1 else f"{count} steps"
