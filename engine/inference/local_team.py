"""Team without a trainer: its backends write, a local sandbox verifies.

Invariants: programs run in this process's sandbox, and this process holds no model; agents of one
model share one backend, so that the model is in memory once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from engine.config.agents import AgentConfig
from engine.config.generator_support import is_endpoint, start_deadline
from engine.config.schema import RunConfig
from engine.environments.opening import open_environment
from engine.environments.types import Move, Settled
from engine.inference.backends import AnswerBackend
from engine.inference.local_backends import BatchBackend, LocalBackend
from engine.inference.sources import local_scheduler
from engine.policy.models.load import model_directory
from engine.policy.types import Request
from engine.rollout.episodes import next_turn
from engine.rollout.forest import Forest, GrowingTree
from engine.rollout.growth import close_nodes, opened_tasks
from engine.rollout.scheduler import Task, VerifiedTask
from engine.rollout.types import Judged, RolloutSink
from engine.run.clock import run_clock
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.self_check import SelfCheck
from engine.sandbox.host.verdict_cache import CachingVerifier

_START = "sandbox and agents to start"
"""Name of the wait that begins with the team and ends when it is ready."""


class LocalTeam:
    """The answer backends of one search or evaluation, and the sandbox that verifies for them."""

    def __init__(
        self,
        config: RunConfig,
        report: Callable[[str], None] = lambda text: None,
        waiting: Callable[[str, float], None] = lambda name, deadline: None,
        run_dir: Path | None = None,
        clock: str | None = None,
    ):
        """`report` receives the progress of trees and samples; `waiting` receives the name and the
        deadline in seconds of every longer wait, and an empty name when it is over. With `run_dir`
        local models write drafts there (`engine.events.drafts`). `clock` is the time that chat
        templates write (default: the run's, `engine.run.clock`)."""
        self.config = config
        self.report = report
        self.count: Callable[[], None] = lambda: None
        """Called at every verified answer."""
        self.waiting = waiting
        self.stopping = False
        """If set, trees open no more nodes; open nodes are finished."""
        self.leaving = False
        """If set, all calls in flight are abandoned: they raise Interrupted within seconds."""
        self._open = ExitStack()
        self.backends: dict[str, AnswerBackend] = {}
        """Backend of each agent; agents of one model share one."""
        try:
            clock = clock or run_clock(config.agents, run_dir)
            waiting(_START, start_deadline(config.agents).seconds)
            self.sandbox = self._open.enter_context(Sandbox(config.sandbox))
            self.check = SelfCheck(self.sandbox)
            self.verifier = CachingVerifier(self.sandbox)
            self.environment = open_environment(config)
            self.threads = ThreadPoolExecutor(config.sandbox.workers, "verifier")
            self._open.callback(self.threads.shutdown, wait=True, cancel_futures=True)
            # While the processes of the models import what they need, which takes seconds.
            self._checked = self.threads.submit(self.check.when_due)
            for agents in _same_model(config.agents):
                backend = _backend(agents, config, run_dir, clock)
                self._open.callback(backend.close)
                self.backends |= dict.fromkeys((agent.name for agent in agents), backend)
        except BaseException:
            self.close()
            raise

    def leave(self) -> None:
        """Abandons all work within seconds; safe in a signal handler and from another thread."""
        self.stopping = self.leaving = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(agent.name for agent in self.config.agents)

    def ready(self) -> None:
        """Waits until sandbox and agents have started.

        Raises:
            BackendError, ModelError: an agent cannot take part.
            SandboxUnavailable: programs cannot be run here.
        """
        deadline = start_deadline(self.config.agents)
        self._checked.result()
        for backend in set(self.backends.values()):
            backend.ready(deadline)
        self.waiting("", 0.0)

    def too_long(self, statements: Sequence[str]) -> dict[int, str]:
        """Returns, by index, why a statement exceeds the prompt limit of some agent."""
        reasons: dict[int, str] = {}
        for backend in dict.fromkeys(self.backends.values()):
            reasons = backend.too_long(statements) | reasons
        return reasons

    def settle(self, moves: Sequence[Move]) -> list[Settled]:
        """Returns what comes of each move, in order."""
        return self.environment.settle(moves, self.verifier.verify)

    def samples(
        self, part: str, requests: Sequence[Request], temperature: float | None = None
    ) -> dict[str, list[Judged]]:
        """Returns a judged answer of every agent to every request, by agent, in request order."""
        judged: dict[tuple[str, int], Judged] = {}
        total = len(requests) * len(self.names)
        scheduler = local_scheduler(self, part, temperature)
        scheduler.submit(Task(a, r, row) for row, r in enumerate(requests) for a in self.names)
        limit = self.config.search.turns_per_episode
        while not scheduler.is_idle:
            later: list[Task] = []
            for done in scheduler.advance():
                if task := next_turn(done, limit):
                    later.append(task)
                    continue
                judged[done.task.agent, done.task.mark] = (done.answer, done.verification)
                self.count()
                self.report(f"{part}: {len(judged)} of {total} answers")
            scheduler.submit(later)
        return {a: [judged[a, row] for row in range(len(requests))] for a in self.names}

    def grow(
        self,
        part: str,
        forest: Forest,
        temperature: float | None = None,
        sink: RolloutSink | None = None,
    ) -> None:
        """Grows every tree to its end, at most `inference.trees_at_once` concurrently."""
        growth = LocalGrowth(self, forest, sink)
        scheduler = local_scheduler(self, part, temperature)
        scheduler.submit(growth.begin())
        while not scheduler.is_idle:
            tasks: list[Task] = []
            for done in scheduler.advance():
                tasks += growth.close(done)
                self.count()
                ended = f"{growth.ended} of {len(forest.trees)} ended"
                self.report(f"{part}: {ended}, {growth.nodes} nodes")
            scheduler.submit(tasks)

    def close(self) -> None:
        """Ends all processes and threads."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LocalGrowth:
    """Trees of one rollout of a local team: `inference.trees_at_once` of them grow at a time."""

    def __init__(self, team: LocalTeam, forest: Forest, sink: RolloutSink | None):
        self.team = team
        self.forest = forest
        self.sink = sink
        self.nodes = self.ended = 0
        """Numbers of closed nodes and of ended trees."""
        self._queued = iter(forest.trees)
        self._growing: set[GrowingTree] = set()

    def begin(self) -> Iterator[Task]:
        """Begins queued trees; yields the tasks of the nodes that open."""
        while len(self._growing) < self.team.config.inference.trees_at_once:
            if (tree := next(self._queued, None)) is None:
                return
            self._growing.add(tree)
            yield from opened_tasks(self.forest, [tree], self.sink)

    def close(self, done: VerifiedTask) -> Iterator[Task]:
        """Closes a node; yields the tasks of those that open after it, none once the team stops."""
        close_nodes(self.forest, done, self.sink)
        tree = done.task.mark.tree
        if not self.team.stopping:
            yield from opened_tasks(self.forest, [tree], self.sink)
        self.nodes += 1
        if tree.search.in_flight == 0:
            self.ended += 1
            self._growing.discard(tree)
            if not self.team.stopping:
                yield from self.begin()


def _same_model(agents: Sequence[AgentConfig]) -> list[list[AgentConfig]]:
    """Groups agents by local model and chat template; each agent of an endpoint is alone."""
    groups: dict[Any, list[AgentConfig]] = {}
    for agent in agents:
        key: Any = agent.name
        if not is_endpoint(agent.model):
            key = (model_directory(agent.model).resolve(), agent.chat_template)
        groups.setdefault(key, []).append(agent)
    return list(groups.values())


def _backend(
    agents: Sequence[AgentConfig], config: RunConfig, run_dir: Path | None, clock: str | None
) -> AnswerBackend:
    if is_endpoint(agents[0].model):
        from engine.inference.endpoint import EndpointBackend

        return EndpointBackend(agents[0], config.inference, open_environment(config))
    local = BatchBackend if config.compute.deterministic else LocalBackend
    return local(agents, config, config.agents.index(agents[0]), run_dir, clock)
