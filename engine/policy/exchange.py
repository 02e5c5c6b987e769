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


SHOWN_CHARACTERS = 20_000
SHOWN_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Generation:
    """One answer. `output_ids` ends with the end-of-text id when that is why it stopped.

    `logprobs[i]` is the natural log-probability of `output_ids[i]` in the softmax of the whole
    vocabulary at `temperature`, which is what the learner computes. `top_p`, `top_k` and `min_p`
    decide which tokens can be drawn and leave these numbers as they are.
    """

    prompt_ids: list[int]
    output_ids: list[int]
    logprobs: list[float]
    stop: StopReason
    policy_version: int
    seconds: float
    temperature: float = 1.0
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
    prompt: str = ""
    """What the agent read, as text; the end of one that is longer than `SHOWN_CHARACTERS`."""
    tokens: tuple[str, ...] = ()
    """Text of each of the first `SHOWN_TOKENS` tokens of the output, special ones included."""


@dataclass(frozen=True, slots=True)
class Size:
    """Number of weights of an agent's policy, and of those that learn (0 if it is frozen)."""

    total: int
    trained: int

    def __str__(self) -> str:
        learn = {0: " (frozen)", self.total: ""}.get(self.trained, f" ({self.trained:,} learn)")
        return f"{self.total:,} parameters{learn}"
