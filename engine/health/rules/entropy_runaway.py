"""The policy loses its form: its entropy has risen far above where it began.

Sees: the mean entropy of an agent's last `UPDATES` updates is above `TIMES` that of its first ten,
and `RISE` above it.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.health.history import BASELINE, History
from engine.health.rule import Finding, trailing
from engine.health.windows import last, mean

TITLE = "Entropy run-away"
ADVICE = (
    "Lower optimizer.learning_rate or loss.entropy_coefficient, lower loss.clip_high, add "
    "loss.kl_coefficient, and look at the answers of the last steps: a policy that writes noise "
    "does not recover; fork from an earlier checkpoint."
)
GENERAL_ADVICE = (
    "Lower the learning rate or the entropy bonus, lower the upper clip range, add a KL penalty, "
    "and look at the answers of the last steps: a policy that writes noise does not recover; go "
    "back to an earlier checkpoint."
)
UPDATES = 10
"""As many as the baseline has, so that both means are equally noisy."""
TIMES = 2.0
"""Runs that learn keep or lower their entropy; one at twice its start explores nothing useful."""
RISE = 0.5
"""Nats per token: a policy that began nearly deterministic may double its entropy unharmed."""


def find(history: History) -> Iterator[Finding]:
    for agent, updates in history.updates.items():
        if len(updates) < BASELINE + UPDATES:
            continue
        recent = last(updates, UPDATES)
        start = mean(update.entropy for update in history.baselines[agent])
        entropy = mean(update.entropy for update in recent)
        limit = max(TIMES * start, start + RISE)
        if entropy > limit:
            high = trailing(recent, lambda update, limit=limit: update.entropy > limit)
            yield Finding(
                f"Mean entropy of the last {UPDATES} updates is {entropy:.3g} nats per token, up "
                f"from {start:.3g} in the first {BASELINE}.",
                (high or recent)[0].step,
                agent,
                {"entropy": entropy, "start": start, "limit": limit},
            )
