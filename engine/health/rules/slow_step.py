"""A step took six times as long as the steps before it.

Sees: the last step, without validation and checkpoint, took more than `TIMES` the median of up to
`BEFORE` steps before it, at least `FEWEST`, and `EXCESS` seconds more.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.health.history import History
from engine.health.rule import Finding
from engine.health.windows import last, median

TITLE = "Slow step"
ADVICE = (
    "Look at the step's phases and at the log for waits and lost nodes, and at the machine: other "
    "work, full memory, a slow disk. Long answers of few nodes are cut by "
    "sampling.max_new_tokens or hidden by training.extra_trees."
)
GENERAL_ADVICE = (
    "Look at the step's timings and at the log for waits and lost workers, and at the machine: "
    "other work, full memory, a slow disk. Long answers of few prompts are cut by a lower limit of "
    "new tokens."
)
BEFORE = 50
FEWEST = 10
"""The first steps warm caches up and are no measure."""
TIMES = 6.0
"""Steps with long answers take two to three times the median in runs that are well."""
EXCESS = 10.0
"""Seconds: steps of a fraction of a second are stretched that much by any other process."""


def find(history: History) -> Iterator[Finding]:
    recent = last(history.steps, BEFORE + 1)
    if len(recent) <= FEWEST:
        return
    seconds, usual = recent[-1].seconds, median(step.seconds for step in recent[:-1])
    if seconds > TIMES * usual and seconds - usual > EXCESS:
        yield Finding(
            f"Step {recent[-1].step} took {seconds:.0f} s, {seconds / usual:.0f} times the median "
            f"of the {len(recent) - 1} before it ({usual:.2g} s).",
            recent[-1].step,
            figures={"seconds": seconds, "median": usual, "limit": TIMES * usual},
        )
