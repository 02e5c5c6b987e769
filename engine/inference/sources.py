"""Answers and verdicts of a team without a trainer: its backends, and threads over its sandbox.

A backend that takes one call at a time receives all its pending requests as one batch; any other
receives each request as a call of its own. Invariants:
- With one request in flight at a time, the order of all calls is a function of the seed. With
  `compute.deterministic` this holds for any number: requests are served in waves
  (`engine.rollout.scheduler`), and every answer has its own random seed.
- Every wait has a deadline; an exception of any call ends the rollout and is raised here.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import count
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from engine.config.deadlines import CALL
from engine.environments.types import Move, Settled
from engine.inference.backends import AgentRequest, AnswerBackend, BackendError, process_ended
from engine.policy.types import Answer
from engine.rollout.scheduler import Demand, Order, Scheduler, Task

if TYPE_CHECKING:
    from engine.inference.local_team import LocalTeam

LOOK_EVERY = 1.0
REPORT_AFTER = 2.0


class Interrupted(Exception):
    """The rollout was requested to exit and abandon all calls in flight."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call in flight: to the backend of these agents, or (without agents) to the sandbox."""

    agents: tuple[str, ...]
    started: float = field(default_factory=time.monotonic)


class CallQueue:
    """All calls in flight of one rollout, from which the next one that ended is taken."""

    def __init__(self, team: LocalTeam):
        self.team = team
        self._calls: dict[Future, _Call] = {}
        self._ended: SimpleQueue[Future] = SimpleQueue()

    def add(self, future: Future, agents: tuple[str, ...] = ()) -> None:
        """Adds a call to the backend of `agents`, or to the sandbox."""
        self._calls[future] = _Call(agents)
        future.add_done_callback(self._ended.put)

    def wait(self, calls: Sequence[Any], name: str) -> list[Future]:
        """Returns the next call that ended; a long wait is reported with what is in flight.

        Raises:
            BackendError: a call of an agent took longer than its deadline.
            SandboxUnavailable: the sandbox fails its self-check.
            Interrupted: an immediate exit was requested.
        """
        self.team.check.when_due()
        future = self._next_ended()
        del self._calls[future]
        return [future]

    def _next_ended(self) -> Future:
        began, is_reported = time.monotonic(), False
        try:
            while True:
                if self.team.leaving:
                    raise Interrupted
                try:
                    return self._ended.get(timeout=LOOK_EVERY)
                except Empty:
                    self._check_deadlines()
                if not is_reported and time.monotonic() - began >= REPORT_AFTER:
                    is_reported = True
                    self.team.waiting(self._in_flight(), CALL.seconds)
        finally:
            if is_reported:
                self.team.waiting("", 0.0)

    def _in_flight(self) -> str:
        """Description of the calls in flight, for the report of a wait."""
        agents = dict.fromkeys(name for call in self._calls.values() for name in call.agents)
        return f"answers of {', '.join(agents)}" if agents else "sandbox"

    def _check_deadlines(self) -> None:
        now, seconds = time.monotonic(), CALL.seconds
        # Calls also wait in the queues of backends and sandbox: the deadline is for the oldest.
        for call in self._calls.values():
            if now - call.started > seconds and call.agents:
                raise BackendError(
                    f"agent {call.agents[0]}: waited {seconds:g} s for its answer; "
                    f"lower sampling.max_new_tokens, or {CALL.remedy}"
                )


@dataclass(slots=True, eq=False)
class _BackendQueue:
    """Pending requests of one backend with their numbers, and the number of its calls in flight."""

    backend: AnswerBackend
    pending: deque[tuple[int, AgentRequest]] = field(default_factory=deque)
    calls: int = 0

    def next_batch(self) -> list[tuple[int, AgentRequest]]:
        if self.calls == self.backend.calls_at_once:
            return []
        size = min(len(self.pending), self.backend.requests_per_call)
        return [self.pending.popleft() for _ in range(size)]


class BackendAnswers:
    """The backends of a local team as an `AnswerSource`.

    `part` names the rollout: the random seeds of its answers, where answers have seeds, are a
    function of the run's seed, that name and the number of their task.
    """

    def __init__(self, team: LocalTeam, part: str, temperature: float | None, queue: CallQueue):
        self.team = team
        self.part = part
        self.temperature = temperature
        self.queue = queue
        queues = {backend: _BackendQueue(backend) for backend in team.backends.values()}
        self._queues = {name: queues[backend] for name, backend in team.backends.items()}
        self._batches: dict[Future, list[tuple[int, AgentRequest]]] = {}

    @property
    def calls(self) -> Sequence[Any]:
        return list(self._batches)

    def submit(self, number: int, task: Task) -> None:
        request = AgentRequest(task.agent, task.request, self._seed(number))
        self._queues[task.agent].pending.append((number, request))

    def send(self, demand: Demand) -> None:
        for queue in set(self._queues.values()):
            while batch := queue.next_batch():
                queue.calls += 1
                requests = [request for _, request in batch]
                future = queue.backend.answer(requests, self.temperature)
                self._batches[future] = batch
                self.queue.add(future, tuple(request.agent for request in requests))

    def take(self, ended: Collection[Any]) -> Mapping[int, Answer]:
        """Returns the answers of ended calls, by number.

        Raises:
            BackendError: the process of a model ended; and whatever the backend raises.
        """
        answers: dict[int, Answer] = {}
        for future in ended:
            if not (batch := self._batches.pop(future, None)):
                continue
            name = batch[0][1].agent
            self._queues[name].calls -= 1
            try:
                results = future.result()
            except BrokenProcessPool:
                raise process_ended(f"agent {name}") from None
            answers |= zip((number for number, _ in batch), results, strict=True)
        return answers

    def _seed(self, number: int) -> int | None:
        if not self.team.config.compute.deterministic:
            return None
        name = repr((self.team.config.seed, self.part, number)).encode()
        return int.from_bytes(hashlib.sha256(name).digest()[:4], "big") >> 1


class ThreadVerdicts:
    """The environment of a local team as a `VerdictSource`: one thread per action."""

    def __init__(self, team: LocalTeam, queue: CallQueue):
        self.team = team
        self.queue = queue
        self._tickets = count()
        self._calls: dict[Future, int] = {}

    @property
    def calls(self) -> Sequence[Any]:
        return list(self._calls)

    def submit(self, moves: Sequence[Move]) -> list[int]:
        tickets = []
        for move in moves:
            future = self.team.threads.submit(self.team.settle, [move])
            tickets.append(next(self._tickets))
            self._calls[future] = tickets[-1]
            self.queue.add(future)
        return tickets

    def take(self, ended: Collection[Any], tickets: Collection[int]) -> Mapping[int, Settled]:
        """Returns the verdicts of ended calls, by ticket; each scheduler has its own source.

        Raises:
            SandboxUnavailable: programs can no longer be verified.
        """
        mine = [future for future in ended if future in self._calls]
        return {self._calls.pop(future): future.result()[0] for future in mine}


def local_scheduler(team: LocalTeam, part: str, temperature: float | None) -> Scheduler:
    """Returns a scheduler that a local team serves; in waves with `compute.deterministic`."""
    queue = CallQueue(team)
    order = Order.WAVES if team.config.compute.deterministic else Order.CONTINUOUS
    answers = BackendAnswers(team, part, temperature, queue)
    return Scheduler(order, answers, ThreadVerdicts(team, queue), queue.wait)
