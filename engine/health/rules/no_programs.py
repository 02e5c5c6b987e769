"""An agent answers without a program, so that nothing can be judged.

Sees: of an agent's answers of the last `STEPS` steps, a share of `SHARE` or more has no program.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.health.history import History
from engine.health.rule import Finding
from engine.health.windows import last

TITLE = "Answers without a program"
ADVICE = (
    "Look at an answer: if it is cut off, raise sampling.max_new_tokens; if it has another form, "
    "choose a chat template with which the model writes programs, or another model. If answers had "
    "programs before, lower optimizer.learning_rate and fork from an earlier checkpoint."
)
STEPS = 5
SHARE = 0.9
"""Untrained starters begin with up to 0.44; a tenth of programs is too little to learn from."""
FEWEST = 20
"""Answers: fewer have a share by chance."""


def find(history: History) -> Iterator[Finding]:
    recent = last(history.steps, STEPS)
    for agent in history.agents if len(recent) == STEPS else ():
        facts = [step.answers[agent] for step in recent if agent in step.answers]
        answers = sum(one.nodes for one in facts)
        without = answers - sum(one.programs for one in facts)
        if answers >= FEWEST and without >= SHARE * answers:
            yield Finding(
                f"{without} of {answers} answers of the last {STEPS} steps have no program.",
                recent[0].step,
                agent,
                {"share": without / answers, "answers": answers, "limit": SHARE},
            )
