"""An agent gives the same program to different problems.

Sees: in each of the last `STEPS` steps, `SHARE` or more of an agent's programs are the same one,
and it answers at least `FEWEST_PROBLEMS` problems and half of those that the agent answered.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.health.answers import AnswerFacts
from engine.health.history import History
from engine.health.rule import Finding, trailing

TITLE = "Repeated answers"
ADVICE = (
    "Look at that program: if it scores, the tests reward it (use problems with more tests, or "
    "credit.score = binary); if not, the policy has collapsed: raise sampling.temperature, lower "
    "optimizer.learning_rate, or fork from an earlier checkpoint."
)
GENERAL_ADVICE = (
    "Look at that answer: if it is rewarded, the reward can be gamed; if not, the policy has "
    "collapsed: raise the temperature, lower the learning rate, or go back to an earlier "
    "checkpoint."
)
STEPS = 5
SHARE = 0.5
"""Runs that learn have 0.27 at most in one step: different problems need different programs."""
FEWEST_PROBLEMS = 4
"""Fewer problems may well share their solution."""


def find(history: History) -> Iterator[Finding]:
    steps = list(history.steps)
    for agent in history.agents:
        same = trailing(steps, lambda step, agent=agent: _is_same(step.answers.get(agent)))
        if len(same) >= STEPS:
            facts = same[-1].answers[agent]
            yield Finding(
                f"{facts.same} of {facts.programs} programs of the last step are the same, for "
                f"{facts.same_problems} of {facts.problems} problems.",
                same[0].step,
                agent,
                {
                    "share": facts.same / facts.programs,
                    "problems": facts.same_problems,
                    "limit": SHARE,
                },
            )


def _is_same(facts: AnswerFacts | None) -> bool:
    return (
        facts is not None
        and facts.programs > 0
        and facts.same >= SHARE * facts.programs
        and facts.same_problems >= max(FEWEST_PROBLEMS, facts.problems / 2)
    )
