"""Types of an environment: its prompts, what it reads in an answer, and what follows.

    task ──messages──► agent ──answer──► read ──action──► settle ──► outcome, observation
                         ▲                                              │
                         └────────────── messages ◄────────────────────┘

A node of a tree is one turn. The root is the task; every other turn follows what was observed after
the turn above it. An episode is a chain of turns, of which only the last one is scored.

Invariants:
- No torch, no Ray, and no problem: policies know an environment by these types alone.
- Values are plain: they cross processes. An observation holds all that a later turn needs, so any
  process continues a node at any time.
- `messages` and `read` are pure. `settle` is too, but for the programs that it runs: the same task,
  observation and action give the same outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import msgspec

from engine.config.schema import RunConfig
from engine.events.states import NoProgram, Verdict
from engine.events.vocabulary import TestReport

Message = dict[str, str]
"""A chat message, as chat templates and servers read it: `role` and `content`."""


class Turn(Protocol):
    """What `messages` reads of a request (`engine.policy.types.Request`)."""

    @property
    def task(self) -> Any:
        """The problem of the tree."""
        ...

    @property
    def observation(self) -> Any:
        """What was observed after the turn above; None if the turn is the first."""
        ...


@dataclass(frozen=True, slots=True)
class Written:
    """An answer as its agent wrote it."""

    text: str
    """Without special tokens, but for those that the environment reads (`reads_token`)."""
    prompt: str = ""
    """The end of the prompt, as text; empty where a server keeps it to itself."""
    is_cut: bool = False
    """Whether it ended at a limit of tokens."""


@dataclass(frozen=True, slots=True)
class Action:
    """What an environment read in an answer."""

    text: str
    """The program, the move; empty if there is none."""
    fault: NoProgram | None = None
    """Why there is none."""


class Move(NamedTuple):
    """An action to be settled."""

    task: Any
    observation: Any
    """What was observed before it; None in the first turn."""
    action: str


class Outcome(Protocol):
    """What came of an action: `engine.sandbox.host.verify.Verification`, or `Played`."""

    @property
    def verdict(self) -> Verdict:
        """`PLAYED` if the episode goes on; `SANDBOX_FAILURE` says nothing about the action."""
        ...

    @property
    def fraction(self) -> float:
        """What the episode is worth so far, 0 to 1; of programs, the share of all tests passed."""
        ...

    @property
    def public(self) -> Sequence[TestReport]:
        """Reports of the tests that agents may see."""
        ...

    @property
    def public_passed(self) -> int: ...

    @property
    def private_passed(self) -> bool:
        """Whether all that agents may not see is right too."""
        ...

    @property
    def passed(self) -> bool:
        """Whether everything is right."""
        ...

    @property
    def error(self) -> str: ...

    @property
    def seconds(self) -> float: ...

    @property
    def strain(self) -> float:
        """Largest share of a time limit that was used; 1 is the whole limit."""
        ...

    @property
    def near_its_limit(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Played:
    """Outcome of an action that ran no program."""

    verdict: Verdict
    """`PLAYED` while the episode goes on; then `PASSED`, `WRONG_ANSWER` or `NO_PROGRAM`."""
    fraction: float = 0.0
    """What the episode is worth, 0 to 1, if it ends here."""
    error: str = ""
    seconds: float = 0.0
    public: tuple[TestReport, ...] = ()
    public_passed: int = 0
    strain: float = 0.0

    @property
    def passed(self) -> bool:
        return self.verdict is Verdict.PASSED

    @property
    def private_passed(self) -> bool:
        return self.passed

    @property
    def near_its_limit(self) -> bool:
        return False


class Settled(msgspec.Struct, frozen=True, gc=False):
    """What came of an action, and what is observed after it."""

    outcome: Any
    """An `Outcome`."""
    observation: Any = None
    """What `messages` shows the next turn; None if nobody moves any more."""

    @property
    def goes_on(self) -> bool:
        """Whether the episode goes on, so that its score is still to come."""
        return self.outcome.verdict is Verdict.PLAYED


RunPrograms = Callable[[Sequence[tuple[Any, str]]], Sequence[Any]]
"""(problem, program) pairs -> verdicts of the sandbox on them, in order."""


class Environment(Protocol):
    """What agents act in."""

    def opening(self, statement: str, role: str) -> list[Message]:
        """Returns the shortest messages of the first turn of a task with this statement."""
        ...

    def messages(self, turn: Turn, role: str) -> Iterable[list[Message]]:
        """Returns the prompts of a turn, from the longest to the shortest; the first that fits an
        agent's limit is used. `role` is the agent's own, empty if it has none."""
        ...

    def reads_token(self, token: str) -> bool:
        """Whether `read` needs this special token of a vocabulary in the text."""
        ...

    def read(self, task: Any, written: Written) -> Action:
        """Returns the action in an answer."""
        ...

    def settle(self, moves: Sequence[Move], run: RunPrograms) -> list[Settled]:
        """Returns what comes of each move, in order; `run` runs programs in the sandbox.

        Never raises for an action: what is wrong with one is its outcome.
        """
        ...


Make = Callable[[RunConfig], Environment]
"""(settings of the run) -> environment."""


def environment_of(module: Any) -> Make:
    """Returns what makes the environment that a module holds: its function or class `environment`.

    Raises:
        ValueError: it holds none.
    """
    if not callable(make := getattr(module, "environment", None)):
        raise ValueError("has no function environment(config)")
    return make
