"""Answers run to their limit while they repeat themselves.

Sees: of an agent's answers of the last `STEPS` steps, `SHARE` or more reached their limit in whole
repeats that make up half of their text (of a long answer, of its first recorded tokens).
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.health.history import History
from engine.health.rule import Finding
from engine.health.windows import last

TITLE = "Answers in loops"
ADVICE = (
    "Raise sampling.temperature or lower optimizer.learning_rate, check that the chat template "
    "ends answers with the model's end token, or penalise long answers: "
    "credit.overlong_buffer_tokens."
)
GENERAL_ADVICE = (
    "Raise the temperature or lower the learning rate, check that the chat template ends answers "
    "with the model's end token, or penalise long answers."
)
STEPS = 5
SHARE = 0.25
"""Single loops occur in any model; of a quarter of the answers nothing is learned."""
FEWEST = 20
"""Answers: fewer have a share by chance."""


def find(history: History) -> Iterator[Finding]:
    recent = last(history.steps, STEPS)
    for agent in history.agents if len(recent) == STEPS else ():
        facts = [step.answers[agent] for step in recent if agent in step.answers]
        answers, loops = sum(one.nodes for one in facts), sum(one.loops for one in facts)
        if answers >= FEWEST and loops >= SHARE * answers:
            yield Finding(
                f"{loops} of {answers} answers of the last {STEPS} steps end in repeats at their "
                "limit.",
                recent[0].step,
                agent,
                {"share": loops / answers, "answers": answers, "limit": SHARE},
            )
