"""An answer is one program, which its problem's tests judge at once; any may be repaired.

Source: docs/algorithm.md, sections 3 and 4. Invariant: nothing of a private test is in a prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from engine.config.schema import RunConfig
from engine.environments.programs.prompts import (
    Feedback,
    Message,
    refinement_prompts,
    root_prompt,
    statement_prompt,
)
from engine.environments.types import Action, Move, RunPrograms, Settled, Turn, Written
from engine.problems.answers.marks import is_thought_mark, opened_thought
from engine.problems.extraction import extract

if TYPE_CHECKING:
    from engine.sandbox.host.verify import Verification

JUDGES_PROGRAMS = True
"""Actions are programs, as references of problems are."""


class Programs:
    """Programs in the sandbox. A task is a `engine.problems.problem.Problem`, an observation the
    `Feedback` on a program."""

    def __init__(self, config: RunConfig):
        self._shows_tests = config.search.error_feedback
        self._shows_traces = config.search.error_traceback
        self._states = config.search.refinement_statement

    def opening(self, statement: str, role: str) -> list[Message]:
        return statement_prompt(statement, role)

    def messages(self, turn: Turn, role: str) -> Iterable[list[Message]]:
        if turn.observation is None:
            return [root_prompt(turn.task, role)]
        return refinement_prompts(turn.task, turn.observation, role, self._states)

    def reads_token(self, token: str) -> bool:
        """Whether it begins or ends a thought: what stands in one is no program."""
        return is_thought_mark(token)

    def read(self, task: Any, written: Written) -> Action:
        # Some templates begin the thought that the answer goes on with.
        text = opened_thought(written.prompt) + written.text
        found = extract(text, task.entry_point, cut=written.is_cut)
        return Action(found.program, found.reason)

    def settle(self, moves: Sequence[Move], run: RunPrograms) -> list[Settled]:
        """Returns the verdicts on programs, with the feedback that a repair is shown.

        Raises:
            SandboxUnavailable: the sandbox cannot be started.
        """
        verdicts = run([(move.task, move.action) for move in moves])
        return [
            Settled(verdict, self._feedback(move.action, verdict))
            for move, verdict in zip(moves, verdicts, strict=True)
        ]

    def _feedback(self, program: str, verdict: Verification) -> Feedback:
        return Feedback(
            program,
            verdict.public if self._shows_tests else None,
            verdict.traces if self._shows_traces else (),
        )


environment = Programs
"""What the registry of environments looks for."""
