"""Clipping removes nearly the whole gradient.

Sees: the mean clip fraction of an agent's last `UPDATES` updates is above `SHARE`.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.health.history import History
from engine.health.rule import Finding, trailing
from engine.health.windows import last, mean

TITLE = "Everything clipped"
ADVICE = (
    "Lower optimizer.learning_rate, widen loss.clip_low and loss.clip_high, or lower "
    "training.minibatches and training.max_staleness: the policy leaves the clip range within one "
    "batch."
)
GENERAL_ADVICE = (
    "Lower the learning rate, widen the clip range, or make fewer optimizer steps per batch of "
    "answers: the policy leaves the clip range within one batch."
)
UPDATES = 5
SHARE = 0.8
"""GSPO's narrow range clips up to half of the sequences in runs that learn; a fifth of the
gradient is left here."""


def find(history: History) -> Iterator[Finding]:
    for agent, updates in history.updates.items():
        recent = last(updates, UPDATES)
        share = mean(update.clip_fraction for update in recent)
        if len(recent) == UPDATES and share > SHARE:
            high = trailing(list(updates), lambda update: update.clip_fraction > SHARE)
            yield Finding(
                f"Mean clip fraction of the last {UPDATES} updates is {share:.0%}.",
                (high or recent)[0].step,
                agent,
                {"clip_fraction": share, "limit": SHARE},
            )
