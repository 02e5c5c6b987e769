"""The loop of a team without a trainer: whoever ends first goes on.

Event-driven, without barriers: every answer is verified as soon as it is there, and every verdict
may lead to new requests at once. A player that takes one call at a time gets all that waits for it
in one batch. Invariants:
- With one request under way at a time, the order of all calls is a function of the seed. With
  `compute.deterministic` it is one with any number: then all that is under way forms a wave, whose
  verdicts are taken in the order of its requests, and every answer has a random seed of its own.
- Every wait has a deadline; what any call raised ends the whole flow, and is raised here.

What the loop waits for: the next call that ends, whichever it is. What it unblocks: the
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
    """It was asked to leave everything as it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One answer that is wanted of one agent; `mark` is the asker's own."""

    agent: str
    request: Request
    mark: Any = None


Finished = Callable[[Task, Answer, Verification], Iterable[Task]]
"""Takes a verified answer; returns what is wanted next."""


@dataclass(frozen=True, slots=True, eq=False)
class _QueuedTask:
    """A task in its place among all of its flow."""

    place: int
    task: Task
    ask: Ask


@dataclass(slots=True, eq=False)
class _BackendQueue:
    """What waits for one player, and how many calls it has."""

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
    """A call under way: to a player, or (with one answer) to the sandbox."""

    orders: list[_QueuedTask]
    answer: Answer | None = None
    started: float = field(default_factory=time.monotonic)


class Scheduler:
    """One run of the loop: from the first tasks until nothing is left to do.

    `part` names it: its answers' random seeds, if they have some, follow from that name, the run's
    seed and the place of their task.
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
        """What is there of the wave, as it came."""
        self._places = count()

    def run(self, tasks: Iterable[Task]) -> None:
        """Work until no task is left.

        Raises:
            PlayerError: an agent failed, or a call took longer than its deadline.
            SandboxUnavailable: programs cannot be verified any more.
            Interrupted: it was asked to leave everything as it is.
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
        """What the calls under way are, in words."""
        asked = {o.task.agent: 0 for c in self.calls.values() if c.answer is None for o in c.orders}
        return f"answers of {', '.join(asked)}" if asked else "sandbox"

    def _look_at_deadlines(self) -> None:
        now = time.monotonic()
        # Calls wait in the queues of players and sandbox too: the deadline is for the oldest.
        for call in self.calls.values():
            if now - call.started > CALL_DEADLINE and call.answer is None:
                raise PlayerError(
                    f"agent {call.orders[0].task.agent}: waited {CALL_DEADLINE:.0f} s for its "
                    "answer; look at the load of the machine, or lower sampling.max_new_tokens"
                )
