"""Generator and learner are apart: they give the same tokens different probabilities.

Sees: the mean mismatch of an agent's last `UPDATES` updates, |log pi_old - log pi_rollout| per
token, is above `LIMIT`.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.health.history import History
from engine.health.rule import Finding, trailing
from engine.health.windows import last, mean

TITLE = "Generator and learner apart"
ADVICE = (
    "Check that the generator has the learner's newest weights, the same chat template and the "
    "same precision (compute.dtype); lower training.max_staleness, or turn on "
    "loss.importance_correction."
)
GENERAL_ADVICE = (
    "Check that the generator has the learner's newest weights, the same chat template and the "
    "same precision; train on fresher answers, or turn on importance sampling correction."
)
UPDATES = 5
"""One update after a resume may learn from older nodes."""
LIMIT = 0.1
"""Nats per token. One program for both has 1e-6, bfloat16 in two programs about 0.01 to 0.03; at
0.1 the ratio of an answer of 50 tokens is off by a factor of 100."""


def find(history: History) -> Iterator[Finding]:
    for agent, updates in history.updates.items():
        recent = last(updates, UPDATES)
        gap = mean(update.mismatch for update in recent)
        if len(recent) == UPDATES and gap > LIMIT:
            high = trailing(list(updates), lambda update: update.mismatch > LIMIT)
            yield Finding(
                f"Mean mismatch of the last {UPDATES} updates is {gap:.3g} nats per token.",
                (high or recent)[0].step,
                agent,
                {"mismatch": gap, "limit": LIMIT},
            )
