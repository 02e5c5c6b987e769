"""Scheduler of generation and verification, for training, evaluation and search alike.

              submit                    answer                     verdict
    caller ───────────► IN_FLIGHT ─────────────────► PENDING ─────────────────► caller, which closes
                        waits for an AnswerSource    waits for a VerdictSource  the node and submits
                            │                            │                      what it unblocks
                            └────────── discard ─────────┘

Nobody waits but `advance`, and it waits for whichever call ends first: of the answers, of the
verdicts, or of `alongside` (an update of the learners, say). An answer is submitted for
verification as soon as it completes. When `advance` returns is the order of the rollout:

- `CONTINUOUS`: after each wait, with the verdicts that it brought, if any. What these unblock joins
  the answers in flight, so neither agents nor sandbox wait for a batch.
- `WAVES`: when nothing is in flight or pending any more, with all verdicts in the order of
  submission. The order of all calls, and so the result, is a function of the seed alone.

Invariant: every task is in one state; it is returned once, or discarded.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from engine.environments.types import Move, Outcome, Settled
from engine.policy.types import Answer, Request
from engine.run.spans import phase_span
from engine.run.timing import timed


class Order(StrEnum):
    """When `Scheduler.advance` returns; see the top of this module."""

    WAVES = "waves"
    CONTINUOUS = "continuous"


class TaskState(StrEnum):
    """State of a submitted task."""

    IN_FLIGHT = "in flight"
    """Waits for its answer."""
    PENDING = "pending verification"
    """Waits for the verdict on its answer."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A request for one verified answer of one agent; `mark` is an opaque value of the caller."""

    agent: str
    request: Request
    mark: Any = None
    turn: int = 1
    """Number of the turn within its episode, where no tree counts them."""


@dataclass(frozen=True, slots=True, eq=False)
class VerifiedTask:
    """A task with its answer and the verdict on it."""

    number: int
    """Index of the task among all tasks of its scheduler."""
    task: Task
    answer: Answer
    settled: Settled

    @property
    def verification(self) -> Outcome:
        """The verdict on its program, or what else came of its action."""
        return self.settled.outcome


@dataclass(frozen=True, slots=True)
class Demand:
    """What an `AnswerSource` may use to decide when to generate."""

    urgent: Collection[int] = ()
    """Numbers of the tasks whose answers are needed first; empty: all alike."""
    coming: int = 0
    """Number of tasks in verification whose verdicts will submit more tasks soon."""


class AnswerSource(Protocol):
    """Generates answers."""

    @property
    def calls(self) -> Sequence[Any]:
        """Calls in flight; `take` processes those that have ended."""
        ...

    def submit(self, number: int, task: Task) -> None:
        """Queues a task under a number that is new to this source."""
        ...

    def send(self, demand: Demand) -> None:
        """Starts calls for queued tasks, as many as are useful now."""
        ...

    def take(self, ended: Collection[Any]) -> Mapping[int, Answer]:
        """Returns the answers of those of the `ended` calls that are its own, by number.

        Raises: the first cause of a call that failed.
        """
        ...


class VerdictSource(Protocol):
    """Settles actions: verifies programs."""

    @property
    def calls(self) -> Sequence[Any]:
        """Calls in flight; `take` processes those that have ended."""
        ...

    def submit(self, moves: Sequence[Move]) -> Sequence[int]:
        """Submits actions; returns tickets for their verdicts."""
        ...

    def take(self, ended: Collection[Any], tickets: Collection[int]) -> Mapping[int, Settled]:
        """Processes those of the `ended` calls that are its own; returns all verdicts that are
        known by now for these tickets. Those of others stay for the schedulers that own them.

        Raises: the cause, if programs can no longer be verified.
        """
        ...


Wait = Callable[[Sequence[Any], str], Collection[Any]]
"""Waits for the first of several calls to end and returns those that have; a long wait is reported
under a name."""


class Scheduler:
    """All tasks in flight or pending verification, of one rollout."""

    def __init__(
        self,
        order: Order,
        answers: AnswerSource,
        verdicts: VerdictSource,
        wait: Wait,
        demand: Callable[[], Demand] = Demand,
    ):
        self.order = order
        self.answers = answers
        self.verdicts = verdicts
        self.wait = wait
        self.demand = demand
        self.in_flight: dict[int, Task] = {}
        """Tasks in the state IN_FLIGHT, by number."""
        self.pending: dict[int, tuple[Task, Answer]] = {}
        """Tasks in the state PENDING, by number."""
        self.alongside: list[Any] = []
        """Other calls in flight for which `advance` waits too; it removes those that have ended."""
        self._numbers = itertools.count()
        self._tickets: dict[int, int] = {}
        """Number of the task of each ticket."""

    @property
    def is_idle(self) -> bool:
        """Whether no task is in flight or pending."""
        return not (self.in_flight or self.pending)

    def state(self, number: int) -> TaskState | None:
        """Returns the state of a task; None once it was returned or discarded."""
        if number in self.in_flight:
            return TaskState.IN_FLIGHT
        return TaskState.PENDING if number in self.pending else None

    def submit(self, tasks: Iterable[Task]) -> None:
        """Requests the answers of new tasks."""
        for task in tasks:
            number = next(self._numbers)
            self.in_flight[number] = task
            self.answers.submit(number, task)
        self.answers.send(self.demand())

    def discard(self, is_discarded: Callable[[Task], bool]) -> None:
        """Drops tasks; their answers and verdicts are ignored when they come."""
        self.in_flight = {n: t for n, t in self.in_flight.items() if not is_discarded(t)}
        self.pending = {n: p for n, p in self.pending.items() if not is_discarded(p[0])}

    def advance(self, phases: dict[str, float] | None = None, name: str = "") -> list[VerifiedTask]:
        """Waits as the order says and returns the tasks that were verified, which may be none.

        Seconds of waiting are added to `phases`, if given, as `generate` while any task is in
        flight, else as `verify`; a long wait is reported as `name`, or as what it is for.

        Raises: what the sources and `wait` raise.
        """
        if self.order is Order.CONTINUOUS:
            return self._next(phases, name)
        verified: list[VerifiedTask] = []
        while not self.is_idle:
            verified += self._next(phases, name)
        return sorted(verified, key=lambda one: one.number)

    def _next(self, phases: dict[str, float] | None, name: str) -> list[VerifiedTask]:
        """Processes the calls that end next, or verdicts that are known already."""
        if not (verdicts := self.verdicts.take((), self._tickets)):
            writing = bool(self.in_flight)
            waited_for = "agents to write" if writing else "sandbox"
            with _timed(phases, "generate" if writing else "verify"):
                calls = [*self.answers.calls, *self.verdicts.calls, *self.alongside]
                ended = self.wait(calls, name or waited_for)
            self.alongside = [call for call in self.alongside if call not in ended]
            with _timed(phases, "generate"):
                answers = self.answers.take(ended)
            self._verify(answers)
            with _timed(phases, "verify"):
                verdicts = self.verdicts.take(ended, self._tickets)
        return self._verified(verdicts)

    def _verify(self, answers: Mapping[int, Answer]) -> None:
        """Moves answered tasks from IN_FLIGHT to PENDING."""
        answered = [number for number in answers if number in self.in_flight]
        for number in answered:
            self.pending[number] = (self.in_flight.pop(number), answers[number])
        # Start generation before verification: the agents' batch must not wait for the loop.
        self.answers.send(self.demand())
        pairs = [self.pending[number] for number in answered]
        moves = [
            Move(task.request.task, task.request.observation, answer.program)
            for task, answer in pairs
        ]
        self._tickets |= zip(self.verdicts.submit(moves), answered, strict=True)

    def _verified(self, verdicts: Mapping[int, Settled]) -> list[VerifiedTask]:
        numbers = {self._tickets.pop(ticket): verdict for ticket, verdict in verdicts.items()}
        return [
            VerifiedTask(number, *self.pending.pop(number), verdict)
            for number, verdict in numbers.items()
            if number in self.pending
        ]


def _timed(phases: dict[str, float] | None, name: str) -> AbstractContextManager[None]:
    return phase_span(name) if phases is None else timed(phases, name)
