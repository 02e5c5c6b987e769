"""A team without a trainer: players write, a sandbox verifies, and whoever ends first goes on.

Event-driven, without barriers: every answer is verified as soon as it is there, and every verdict
may lead to new requests at once. An agent that takes one call at a time gets all that waits for it
in one batch. Invariants:
- Programs run in this process's sandbox, and this process holds no model.
- With one request under way at a time, the order of all calls is a function of the seed.
- Every wait has a deadline; what any call raised ends the whole flow, and is raised here.

What the loop waits for: the next call that ends, whichever it is. What it unblocks: the
verification of an answer, or the requests that follow from a verdict.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Self

from engine.config import AgentConfig, RunConfig
from engine.inference.agents import is_endpoint
from engine.inference.measurement import Judged
from engine.inference.players import START_DEADLINE, LocalPlayer, Player, PlayerError
from engine.policy.exchange import Answer, Request
from engine.sandbox.checking import SelfCheck
from engine.sandbox.memory import RememberingVerifier
from engine.sandbox.sandbox import Sandbox
from engine.sandbox.verify import Verification
from engine.training.forest import Claim, Forest, GrowingTree
from engine.training.rollout import RolloutSink

CALL_DEADLINE = 3600.0
LOOK_EVERY = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One answer that is wanted of one agent; `mark` is the asker's own."""

    agent: str
    request: Request
    mark: Any = None


Finished = Callable[[Task, Answer, Verification], Iterable[Task]]
"""Takes a verified answer; returns what is wanted next."""


class Crew:
    """The players of one search or evaluation, and the sandbox that verifies for them."""

    def __init__(
        self,
        config: RunConfig,
        tell: Callable[[str], None] = lambda text: None,
    ):
        self.config = config
        self.tell = tell
        self.stopping = False
        """Trees open no more nodes; those that are open are finished."""
        self._open = ExitStack()
        self.players: dict[str, Player] = {}
        try:
            for position, agent in enumerate(config.agents):
                player = _player(agent, config, position)
                self._open.callback(player.close)
                self.players[agent.name] = player
            self.sandbox = self._open.enter_context(Sandbox(config.sandbox))
            self.check = SelfCheck(self.sandbox)
            self.verifier = RememberingVerifier(self.sandbox)
            self.threads = ThreadPoolExecutor(config.sandbox.workers, "verifier")
            self._open.callback(self.threads.shutdown, wait=True, cancel_futures=True)
        except BaseException:
            self.close()
            raise

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.players)

    def ready(self) -> None:
        """Wait until everyone has started.

        Raises:
            PlayerError, ModelError: an agent cannot take part.
            SandboxUnavailable: programs cannot be run here.
        """
        self.check.when_due()
        for player in self.players.values():
            player.ready(START_DEADLINE)

    def samples(
        self, part: str, requests: Sequence[Request], temperature: float | None = None
    ) -> dict[str, list[Judged]]:
        """One judged answer of every agent to every request, by agent, in the requests' order."""
        found: dict[tuple[str, int], Judged] = {}
        total = len(requests) * len(self.players)

        def finished(task: Task, answer: Answer, verification: Verification) -> Iterable[Task]:
            found[task.agent, task.mark] = (answer, verification)
            self.tell(f"{part}: {len(found)} of {total} answers")
            return ()

        tasks = [Task(a, r, row) for row, r in enumerate(requests) for a in self.players]
        Flow(self, finished, temperature).run(tasks)
        return {a: [found[a, row] for row in range(len(requests))] for a in self.players}

    def grow(
        self,
        part: str,
        forest: Forest,
        temperature: float | None = None,
        sink: RolloutSink | None = None,
    ) -> None:
        """Grow every tree to its end; at most `inference.trees_at_once` are under way."""
        waiting = iter(forest.trees)
        active: set[GrowingTree] = set()
        nodes = ended = 0

        def claimed(trees: Iterable[GrowingTree]) -> Iterator[Task]:
            for claim in forest.claim(list(trees)):
                if sink:
                    sink.opened(claim)
                expansion = claim.expansion
                yield Task(expansion.agent, claim.tree.request(expansion), claim)

        def begun() -> Iterator[Task]:
            while len(active) < self.config.inference.trees_at_once:
                if (tree := next(waiting, None)) is None:
                    return
                active.add(tree)
                yield from claimed([tree])

        def finished(task: Task, answer: Answer, verification: Verification) -> Iterator[Task]:
            nonlocal nodes, ended
            claim: Claim = task.mark
            node = forest.close(claim, answer, verification)
            if sink:
                sink.closed(claim.tree, node)
            if not self.stopping:
                yield from claimed([claim.tree])
            nodes += 1
            if claim.tree.search.in_flight == 0:
                ended += 1
                active.discard(claim.tree)
                if not self.stopping:
                    yield from begun()
            self.tell(f"{part}: {ended} of {len(forest.trees)} ended, {nodes} nodes")

        Flow(self, finished, temperature).run(begun())

    def close(self) -> None:
        """End all processes and threads."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(slots=True, eq=False)
class _Desk:
    """What waits for one agent, and how many calls it has."""

    player: Player
    waiting: deque[Task] = field(default_factory=deque)
    calls: int = 0

    def next_call(self) -> list[Task]:
        if self.calls == self.player.calls_at_once:
            return []
        count = min(len(self.waiting), self.player.requests_per_call)
        return [self.waiting.popleft() for _ in range(count)]


@dataclass(slots=True, eq=False)
class _Call:
    """A call under way: to an agent, or (with one answer) to the sandbox."""

    tasks: list[Task]
    answer: Answer | None = None
    started: float = field(default_factory=time.monotonic)


class Flow:
    """One run of the loop: from the first tasks until nothing is left to do."""

    def __init__(self, crew: Crew, finished: Finished, temperature: float | None):
        self.crew = crew
        self.finished = finished
        self.temperature = temperature
        self.desks = {name: _Desk(player) for name, player in crew.players.items()}
        self.calls: dict[Future, _Call] = {}
        self.ended: SimpleQueue[Future] = SimpleQueue()

    def run(self, tasks: Iterable[Task]) -> None:
        """Work until no task is left.

        Raises:
            PlayerError: an agent failed, or a call took longer than its deadline.
            SandboxUnavailable: programs cannot be verified any more.
        """
        self._take(tasks)
        while self.calls:
            self.crew.check.when_due()
            future = self._next_ended()
            call = self.calls.pop(future)
            if call.answer is None:
                self._written(call, future)
            else:
                self._take(self.finished(call.tasks[0], call.answer, future.result()[0]))

    def _take(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            self.desks[task.agent].waiting.append(task)
        self._send()

    def _send(self) -> None:
        for desk in self.desks.values():
            while batch := desk.next_call():
                desk.calls += 1
                requests = [task.request for task in batch]
                self._started(desk.player.answer(requests, self.temperature), _Call(batch))

    def _written(self, call: _Call, future: Future) -> None:
        name = call.tasks[0].agent
        self.desks[name].calls -= 1
        try:
            answers = future.result()
        except BrokenProcessPool:
            raise PlayerError(
                f"agent {name}: the process of its model ended; look at this machine's free memory"
            ) from None
        for task, answer in zip(call.tasks, answers, strict=True):
            pair = (task.request.problem, answer.program)
            verified = self.crew.threads.submit(self.crew.verifier.verify, [pair])
            self._started(verified, _Call([task], answer))
        self._send()

    def _started(self, future: Future, call: _Call) -> None:
        self.calls[future] = call
        future.add_done_callback(self.ended.put)

    def _next_ended(self) -> Future:
        while True:
            try:
                return self.ended.get(timeout=LOOK_EVERY)
            except Empty:
                self._look_at_deadlines()

    def _look_at_deadlines(self) -> None:
        now = time.monotonic()
        # Calls wait in the queues of players and sandbox too: the deadline is for the oldest.
        for call in self.calls.values():
            if now - call.started > CALL_DEADLINE and call.answer is None:
                raise PlayerError(
                    f"agent {call.tasks[0].agent}: waited {CALL_DEADLINE:.0f} s for its answer; "
                    "look at the load of the machine, or lower sampling.max_new_tokens"
                )


def _player(agent: AgentConfig, config: RunConfig, position: int) -> Player:
    if is_endpoint(agent.model):
        from engine.inference.endpoint import EndpointPlayer

        return EndpointPlayer(agent, config.inference)
    return LocalPlayer(agent, config, position)
