"""Turns that each request a letter; an episode is worth the share of letters that were new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from engine.config.base import Settings
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


class Options(Settings):
    """New letters."""

    turns: int = Field(3, ge=1, le=10)
    """Turns of an episode."""


def environment(config: RunConfig) -> NewLetters:
    """Returns the environment of a run."""
    return NewLetters(config.environment.options("name").turns)


class NewLetters:
    """What is observed is the text of the letters so far."""

    def __init__(self, turns: int):
        self.turns = turns

    def opening(self, statement: str, role: str) -> list[Message]:
        return [{"role": "user", "content": "A letter?"}]

    def messages(self, turn: Turn, role: str) -> list[list[Message]]:
        if turn.observation is None:
            return [self.opening(turn.task.statement, role)]
        return [[{"role": "user", "content": f"A letter that is not in {turn.observation}?"}]]

    def reads_token(self, token: str) -> bool:
        return False

    def read(self, task: Any, written: Written) -> Action:
        letter = next((one for one in written.text.lower() if one.isalpha()), "")
        return Action(letter, None if letter else NoProgram.NO_ANSWER)

    def settle(self, moves: Sequence[Move], run: RunPrograms) -> list[Settled]:
        return [self._settled(*move) for move in moves]

    def _settled(self, task: Any, before: str | None, letter: str) -> Settled:
        letters = (before or "") + letter
        worth = len(set(letters)) / self.turns
        if not letter:
            return Settled(Played(Verdict.NO_PROGRAM, worth))
        if len(letters) < self.turns:
            return Settled(Played(Verdict.PLAYED, worth), letters)
        return Settled(Played(Verdict.PASSED if worth == 1 else Verdict.WRONG_ANSWER, worth))
