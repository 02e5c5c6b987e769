"""What passes between the training loop and an agent. Invariant: no torch here: the loop's
process holds no model and must not pay for one."""

from __future__ import annotations

from dataclasses import dataclass

from engine.events import StopReason
from engine.policy.prompts import Feedback, Message
from engine.problems.problem import Problem

Stream = tuple[str | int, ...]
"""Name of a sequence of random numbers; those of different names have nothing to do with another.
"""


@dataclass(frozen=True, slots=True)
class Generation:
    """One answer. `output_ids` ends with the end-of-text id when that is why it stopped.

    `logprobs[i]` is the natural log-probability of `output_ids[i]` under the distribution it was
    sampled from: temperature and nucleus applied.
    """

    prompt_ids: list[int]
    output_ids: list[int]
    logprobs: list[float]
    stop: StopReason
    policy_version: int
    seconds: float
    reported_tokens: int | None = None
    """Length of the output where a server tells it but not its ids; None: `output_ids` has all."""

    @property
    def tokens(self) -> int:
        """Length of the output."""
        return len(self.output_ids) if self.reported_tokens is None else self.reported_tokens


@dataclass(frozen=True, slots=True)
class Request:
    """Ask for one answer: to the problem, or as a repair of a parent's program."""

    problem: Problem
    feedback: Feedback | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the agent wrote, as tokens and as the program found in it ("" if none)."""

    generation: Generation
    program: str
    text: str = ""
    """The whole answer, without special tokens."""
    messages: tuple[Message, ...] = ()
    """What was sent to a server, where no prompt ids are known."""
