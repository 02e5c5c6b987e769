"""No ratio is ever clipped, although every batch has several optimizer steps.

Sees: `UPDATES` updates in a row clipped nothing at all, while their learning rate was not at its
end. Only where something can clip: `training.minibatches` above 1, and a loss with a clip range.
Settings that a paper gives for a large model warn on a small one, whose weights they do not move.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.health.history import History
from engine.health.rule import Finding, trailing

TITLE = "Nothing clipped"
ADVICE = (
    "Raise optimizer.learning_rate, or narrow loss.clip_low and loss.clip_high: the updates are "
    "too small to reach the clip range."
)
GENERAL_ADVICE = (
    "Raise the learning rate, or narrow the clip range: the updates are too small to reach it."
)
UPDATES = 20
"""An update has thousands of ratios; that none of twenty is outside is no chance."""
LEAST_RATE = 0.1
"""Share of the highest learning rate; at the end of a schedule, updates are meant to be small."""


def find(history: History) -> Iterator[Finding]:
    if not history.setup.clips:
        return
    for agent, updates in history.updates.items():
        least = LEAST_RATE * history.highest_rates[agent]
        still = trailing(
            list(updates),
            lambda one, least=least: one.clip_fraction == 0 and one.learning_rate >= least,
        )
        if len(still) >= UPDATES:
            yield Finding(
                f"The clip fraction of {len(still)} updates in a row is 0, at a learning rate of "
                f"{still[-1].learning_rate:.3g}.",
                still[0].step,
                agent,
                {"updates": len(still), "learning_rate": still[-1].learning_rate},
            )
