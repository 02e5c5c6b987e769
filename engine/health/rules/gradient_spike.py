"""A gradient far above those before it: a few rows dominate the update.

Sees: the gradient norm of an agent's last update is above `TIMES` the median of the `BEFORE`
updates before it, and above `LIMITS` times `optimizer.max_gradient_norm`.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.health.history import History
from engine.health.rule import Finding
from engine.health.windows import last, median

TITLE = "Gradient spike"
ADVICE = (
    "Look at the update's nodes with the largest advantages; lower optimizer.learning_rate or "
    "optimizer.max_gradient_norm, truncate more (loss.importance_threshold), or use dual_clip. One "
    "spike is harmless, several in a row precede divergence."
)
GENERAL_ADVICE = (
    "Look at the answers with the largest advantages; lower the learning rate or the limit of the "
    "gradient norm, or truncate importance ratios. One spike is harmless, several in a row precede "
    "divergence."
)
BEFORE = 20
TIMES = 10.0
"""Norms of small batches vary: runs that learn have up to 17 times the median, at norms below 3."""
LIMITS = 5.0
"""A gradient up to a few times its limit is scaled down and does no harm, whatever the median; runs
that learn have 3.5 at most."""
DEFAULT_LIMIT = 1.0


def find(history: History) -> Iterator[Finding]:
    for agent, updates in history.updates.items():
        recent = last(updates, BEFORE + 1)
        if len(recent) <= BEFORE:
            continue
        norm, usual = recent[-1].gradient_norm, median(one.gradient_norm for one in recent[:-1])
        limit = LIMITS * history.setup.gradient_limits.get(agent, DEFAULT_LIMIT)
        if norm > limit and norm > TIMES * usual:
            yield Finding(
                f"The gradient norm of the last update is {norm:.3g}, {norm / usual:.0f} times the "
                f"median of the {BEFORE} before it ({usual:.3g})."
                if usual
                else f"The gradient norm of the last update is {norm:.3g}, after {BEFORE} of 0.",
                recent[-1].step,
                agent,
                {"gradient_norm": norm, "median": usual, "limit": max(limit, TIMES * usual)},
            )
