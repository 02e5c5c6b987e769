"""Team without a trainer: its backends write, a local sandbox verifies.

Invariants: programs run in this process's sandbox, and this process holds no model; agents of one
model share one backend, so that the model is in memory once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Self

from engine.config.agents import AgentConfig
from engine.config.generator_support import start_deadline
from engine.config.schema import RunConfig
from engine.inference.agents import is_endpoint
from engine.inference.backends import AnswerBackend, LocalPlayer
from engine.inference.scheduler import Scheduler, Task
from engine.policy.models.load import model_directory
from engine.policy.types import Answer, Request
from engine.rollout.forest import Forest, GrowingTree, OpenNode
from engine.rollout.types import Judged, RolloutSink
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.self_check import SelfCheck
from engine.sandbox.host.verdict_cache import RememberingVerifier
from engine.sandbox.host.verify import Verification


class LocalTeam:
    """The answer backends of one search or evaluation, and the sandbox that verifies for them."""

    def __init__(
        self,
        config: RunConfig,
        tell: Callable[[str], None] = lambda text: None,
        waiting: Callable[[str, float], None] = lambda name, deadline: None,
    ):
        """`tell` receives the progress of trees and samples; `waiting` receives the name and the
        deadline in seconds of every longer wait, and an empty name when it is over."""
        self.config = config
        self.tell = tell
        self.waiting = waiting
        self.stopping = False
        """If set, trees open no more nodes; open nodes are finished."""
        self.leaving = False
        """If set, all calls in flight are abandoned: they raise Interrupted within seconds."""
        self._open = ExitStack()
        self.players: dict[str, AnswerBackend] = {}
        """Backend of each agent; agents of one model share one."""
        try:
            for agents in _same_model(config.agents):
                player = _player(agents, config)
                self._open.callback(player.close)
                self.players |= dict.fromkeys((agent.name for agent in agents), player)
            self.sandbox = self._open.enter_context(Sandbox(config.sandbox))
            self.check = SelfCheck(self.sandbox)
            self.verifier = RememberingVerifier(self.sandbox)
            self.threads = ThreadPoolExecutor(config.sandbox.workers, "verifier")
            self._open.callback(self.threads.shutdown, wait=True, cancel_futures=True)
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
            PlayerError, ModelError: an agent cannot take part.
            SandboxUnavailable: programs cannot be run here.
        """
        deadline = start_deadline(self.config.agents)
        self.waiting("sandbox and agents to start", deadline)
        self.check.when_due()
        for player in set(self.players.values()):
            player.ready(deadline)
        self.waiting("", 0.0)

    def samples(
        self, part: str, requests: Sequence[Request], temperature: float | None = None
    ) -> dict[str, list[Judged]]:
        """Returns a judged answer of every agent to every request, by agent, in request order."""
        found: dict[tuple[str, int], Judged] = {}
        total = len(requests) * len(self.names)

        def finished(task: Task, answer: Answer, verification: Verification) -> Iterable[Task]:
            found[task.agent, task.mark] = (answer, verification)
            self.tell(f"{part}: {len(found)} of {total} answers")
            return ()

        tasks = [Task(a, r, row) for row, r in enumerate(requests) for a in self.names]
        Scheduler(self, part, finished, temperature).run(tasks)
        return {a: [found[a, row] for row in range(len(requests))] for a in self.names}

    def grow(
        self,
        part: str,
        forest: Forest,
        temperature: float | None = None,
        sink: RolloutSink | None = None,
    ) -> None:
        """Grows every tree to its end, at most `inference.trees_at_once` concurrently."""
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
            claim: OpenNode = task.mark
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

        Scheduler(self, part, finished, temperature).run(begun())

    def close(self) -> None:
        """Ends all processes and threads."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _same_model(agents: Sequence[AgentConfig]) -> list[list[AgentConfig]]:
    """Groups agents by local model and chat template; each agent of an endpoint is alone."""
    groups: dict[Any, list[AgentConfig]] = {}
    for agent in agents:
        key: Any = agent.name
        if not is_endpoint(agent.model):
            key = (model_directory(agent.model).resolve(), agent.chat_template)
        groups.setdefault(key, []).append(agent)
    return list(groups.values())


def _player(agents: Sequence[AgentConfig], config: RunConfig) -> AnswerBackend:
    if is_endpoint(agents[0].model):
        from engine.inference.endpoint import EndpointPlayer

        return EndpointPlayer(agents[0], config.inference)
    return LocalPlayer(agents, config, config.agents.index(agents[0]))
