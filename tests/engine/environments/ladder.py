"""A toy environment of three turns: each asks for one digit; an episode is worth the share of right
ones. A wrong digit does not end it, and an answer without a digit does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from engine.config.schema import RunConfig
from engine.environments.types import (
    Action,
    Message,
    Move,
    Played,
    RunPrograms,
    Settled,
    Turn,
    Written,
)
from engine.events.states import NoProgram, Verdict

TURNS = 3


class Ladder:
    """What is observed: the digits so far, as a text."""

    def opening(self, statement: str, role: str) -> list[Message]:
        return [{"role": "user", "content": f"{statement} digit 1?"}]

    def messages(self, turn: Turn, role: str) -> Iterable[list[Message]]:
        if turn.observation is None:
            return [self.opening(turn.task.statement, role)]
        so_far = f"{turn.observation}, digit {len(turn.observation) + 1}?"
        return [[{"role": "user", "content": f"{turn.task.statement} {so_far}"}]]

    def reads_token(self, token: str) -> bool:
        return False

    def read(self, task: Any, written: Written) -> Action:
        digit = next((one for one in written.text if one in "0123456789"), "")
        return Action(digit, None if digit else NoProgram.NO_CODE)

    def settle(self, moves: Sequence[Move], run: RunPrograms) -> list[Settled]:
        return [self._settled(*move) for move in moves]

    def _settled(self, task: Any, observation: str | None, digit: str) -> Settled:
        if digit == "9":  # a technical failure, which says nothing about the action
            return Settled(Played(Verdict.SANDBOX_FAILURE, error="the dice are lost"))
        digits = (observation or "") + digit
        worth = sum(one == two for one, two in zip(digits, task.tags[0], strict=False)) / TURNS
        if not digit:
            return Settled(Played(Verdict.NO_PROGRAM, worth, "no digit"))
        if len(digits) < TURNS:
            return Settled(Played(Verdict.PLAYED, worth), digits)
        return Settled(Played(Verdict.PASSED if worth == 1 else Verdict.WRONG_ANSWER, worth))


def environment(config: RunConfig) -> Ladder:
    return Ladder()
