"""Answers are cut off before they end, so that what they would have said is not judged.

Sees: of an agent's answers of the last `STEPS` steps, a share of `SHARE` or more reached a limit of
tokens. Of a trainer that logs this share alone, the mean over `SHARES` steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from engine.health.history import History
from engine.health.rule import Finding
from engine.health.windows import last, mean

TITLE = "Truncated answers"
ADVICE = (
    "Raise sampling.max_new_tokens if the answers are still going somewhere; else check that the "
    "chat template ends answers with the model's end token, penalise long answers "
    "(credit.overlong_buffer_tokens), or lower optimizer.learning_rate."
)
GENERAL_ADVICE = (
    "Raise the limit of new tokens if the answers are still going somewhere; else check that the "
    "chat template ends answers with the model's end token, penalise long answers (soft overlong "
    "punishment), or lower the learning rate."
)
STEPS = 5
SHARE = 0.8
"""Hard problems may cut half of the answers; with a fifth left, the limit decides the score."""
FEWEST = 20
"""Answers: fewer have a share by chance."""
SHARES = 10
"""Steps: a group has two answers at least, so that these are `FEWEST`."""


def find(history: History) -> Iterator[Finding]:
    if not any(step.trees for step in history.steps):
        yield from _by_shares(history)
        return
    recent = last(history.steps, STEPS)
    for agent in history.agents if len(recent) == STEPS else ():
        facts = [step.answers[agent] for step in recent if agent in step.answers]
        answers, cut = sum(one.nodes for one in facts), sum(one.cut for one in facts)
        if answers >= FEWEST and cut >= SHARE * answers:
            yield Finding(
                f"{cut} of {answers} answers of the last {STEPS} steps were cut off at a limit.",
                recent[0].step,
                agent,
                {"share": cut / answers, "answers": answers, "limit": SHARE},
            )


def _by_shares(history: History) -> Iterator[Finding]:
    known = [step for step in history.steps if math.isfinite(step.cut_share)]
    recent = last(known, SHARES)
    share = mean(step.cut_share for step in recent)
    if len(recent) == SHARES and share >= SHARE:
        yield Finding(
            f"On average {share:.0%} of the answers of the last {SHARES} steps were cut off at a "
            "limit.",
            recent[0].step,
            figures={"share": share, "steps": SHARES, "limit": SHARE},
        )
