"""Event loop of a team without a trainer: answers and verdicts are processed as they complete.

There are no barriers: every answer is verified as soon as it completes, and every verdict may
issue new requests at once. A backend that takes one call at a time receives all its pending
requests as one batch. Invariants:
- With one request in flight at a time, the order of all calls is a function of the seed. With
  `compute.deterministic` this holds for any number: all requests in flight form a wave, whose
  verdicts are processed in the order of its requests, and every answer has its own random seed.
- Every wait has a deadline; an exception of any call ends the whole loop and is raised here.

The loop waits for the next call that completes, whichever it is. That call unblocks the
verification of an answer, or the requests that follow from a verdict.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import count
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from engine.inference.backends import AnswerBackend, Ask, PlayerError, process_ended
from engine.policy.types import Answer, Request
from engine.sandbox.host.verify import Verification

if TYPE_CHECKING:
    from engine.inference.local_team import LocalTeam

CALL_DEADLINE = 3600.0
LOOK_EVERY = 1.0
REPORT_AFTER = 2.0


class Interrupted(Exception):
    """The loop was requested to exit and abandon all calls in flight."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A request for one answer of one agent; `mark` is an opaque value of the caller."""

    agent: str
    request: Request
    mark: Any = None


Finished = Callable[[Task, Answer, Verification], Iterable[Task]]
"""Takes a verified answer; returns the tasks to run next."""


@dataclass(frozen=True, slots=True, eq=False)
class _QueuedTask:
    """A task with its index among all tasks of its scheduler."""

    place: int
    task: Task
    ask: Ask


@dataclass(slots=True, eq=False)
class _BackendQueue:
    """Pending tasks of one backend, and the number of its calls in flight."""

    player: AnswerBackend
    waiting: deque[_QueuedTask] = field(default_factory=deque)
    calls: int = 0

    def next_call(self) -> list[_QueuedTask]:
        if self.calls == self.player.calls_at_once:
            return []
        count = min(len(self.waiting), self.player.requests_per_call)
        return [self.waiting.popleft() for _ in range(count)]


@dataclass(slots=True, eq=False)
class _InflightCall:
    """A call in flight: to a backend, or (with one answer) to the sandbox."""

    orders: list[_QueuedTask]
    answer: Answer | None = None
    started: float = field(default_factory=time.monotonic)


class Scheduler:
    """One run of the event loop: from the first tasks until none is left.

    `part` names it: the random seeds of its answers, where answers have seeds, are a function of
    the run's seed, that name and the index of their task.
    """

    def __init__(self, crew: LocalTeam, part: str, finished: Finished, temperature: float | None):
        self.crew = crew
        self.part = part
        self.finished = finished
        self.temperature = temperature
        self.in_waves = crew.config.compute.deterministic
        desks = {player: _BackendQueue(player) for player in crew.players.values()}
        self.desks = {name: desks[player] for name, player in crew.players.items()}
        self.calls: dict[Future, _InflightCall] = {}
        self.ended: SimpleQueue[Future] = SimpleQueue()
        self._wave: list[tuple[_QueuedTask, Answer, Verification]] = []
        """Verified answers of the current wave, in order of completion."""
        self._places = count()

    def run(self, tasks: Iterable[Task]) -> None:
        """Runs until no task is left.

        Raises:
            PlayerError: an agent failed, or a call took longer than its deadline.
            SandboxUnavailable: programs can no longer be verified.
            Interrupted: an immediate exit was requested.
        """
        self._take(tasks)
        while self.calls:
            self.crew.check.when_due()
            future = self._next_ended()
            call = self.calls.pop(future)
            if call.answer is None:
                self._written(call, future)
            else:
                self._verified(call.orders[0], call.answer, future.result()[0])

    def _take(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            place = next(self._places)
            ask = Ask(task.agent, task.request, self._seed(place))
            self.desks[task.agent].waiting.append(_QueuedTask(place, task, ask))
        self._send()

    def _seed(self, place: int) -> int | None:
        if not self.in_waves:
            return None
        name = repr((self.crew.config.seed, self.part, place)).encode()
        return int.from_bytes(hashlib.sha256(name).digest()[:4], "big") >> 1

    def _send(self) -> None:
        for desk in set(self.desks.values()):
            while batch := desk.next_call():
                desk.calls += 1
                asks = [order.ask for order in batch]
                self._started(desk.player.answer(asks, self.temperature), _InflightCall(batch))

    def _written(self, call: _InflightCall, future: Future) -> None:
        name = call.orders[0].task.agent
        self.desks[name].calls -= 1
        try:
            answers = future.result()
        except BrokenProcessPool:
            raise process_ended(f"agent {name}") from None
        for order, answer in zip(call.orders, answers, strict=True):
            pair = (order.task.request.problem, answer.program)
            verified = self.crew.threads.submit(self.crew.verifier.verify, [pair])
            self._started(verified, _InflightCall([order], answer))
        self._send()

    def _verified(self, order: _QueuedTask, answer: Answer, verification: Verification) -> None:
        self._wave.append((order, answer, verification))
        if self.in_waves and self.calls:
            return
        wave, self._wave = sorted(self._wave, key=lambda entry: entry[0].place), []
        self._take([t for one, *told in wave for t in self.finished(one.task, *told)])

    def _started(self, future: Future, call: _InflightCall) -> None:
        self.calls[future] = call
        future.add_done_callback(self.ended.put)

    def _next_ended(self) -> Future:
        began, told = time.monotonic(), False
        try:
            while True:
                if self.crew.leaving:
                    raise Interrupted
                try:
                    return self.ended.get(timeout=LOOK_EVERY)
                except Empty:
                    self._look_at_deadlines()
                if not told and time.monotonic() - began >= REPORT_AFTER:
                    told = True
                    self.crew.waiting(self._awaited(), CALL_DEADLINE)
        finally:
            if told:
                self.crew.waiting("", 0.0)

    def _awaited(self) -> str:
        """Description of the calls in flight, for the report of a wait."""
        asked = {o.task.agent: 0 for c in self.calls.values() if c.answer is None for o in c.orders}
        return f"answers of {', '.join(asked)}" if asked else "sandbox"

    def _look_at_deadlines(self) -> None:
        now = time.monotonic()
        # Calls also wait in the queues of backends and sandbox: the deadline is for the oldest.
        for call in self.calls.values():
            if now - call.started > CALL_DEADLINE and call.answer is None:
                raise PlayerError(
                    f"agent {call.orders[0].task.agent}: waited {CALL_DEADLINE:.0f} s for its "
                    "answer; look at the load of the machine, or lower sampling.max_new_tokens"
                )
