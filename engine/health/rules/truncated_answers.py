"""Answers are cut off before they end, so that what they would have said is not judged.

Sees: of an agent's answers of the last `STEPS` steps, a share of `SHARE` or more reached a limit of
tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.health.history import History
from engine.health.rule import Finding
from engine.health.windows import last

TITLE = "Truncated answers"
ADVICE = (
    "Raise sampling.max_new_tokens if the answers are still going somewhere; else check that the "
    "chat template ends answers with the model's end token, penalise long answers "
    "(credit.overlong_buffer_tokens), or lower optimizer.learning_rate."
)
STEPS = 5
SHARE = 0.8
"""Hard problems may cut half of the answers; with a fifth left, the limit decides the score."""
FEWEST = 20
"""Answers: fewer have a share by chance."""


def find(history: History) -> Iterator[Finding]:
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
