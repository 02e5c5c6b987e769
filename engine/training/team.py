"""The team of a run: handles of its actors, and the calls that the training loop makes to them.

There is one learner for each set of weights, or for all adapters over one base, and as many
generators alongside it as the settings say; without any, the learner generates too. Agents that
share weights share all of these actors.

Invariants:
- An actor's calls run in the order in which they were submitted: requests submitted to a generator
  after new weights are answered with those weights.
- The learners generate the answers of evaluations, which need their random numbers and starting
  weights.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import ray
from ray.util.placement_group import placement_group_table

from engine.config.agents import AgentConfig
from engine.config.deadlines import CALL, Deadline
from engine.config.generator_support import start_deadline
from engine.config.judge import judge_in_use
from engine.config.schema import RunConfig
from engine.config.weight_sharing import actor_groups, weight_groups
from engine.policy.handles import PolicyHandle
from engine.policy.learner.rows import TrainingRow
from engine.policy.types import AnswerCall, Generation, Request, Size
from engine.preload.environment import runtime_environment
from engine.rollout.types import AnswerBatch
from engine.rollout.verification import VerifierPool
from engine.run.clock import run_clock
from engine.run.own_ray import run_nodes
from engine.run.spans import submitted
from engine.run.waits import Waiting, of_agents, wait_for, wait_for_any
from engine.training.actors import PolicyActor
from engine.training.cluster import connect, gpus_of, reserve, seated
from engine.training.judging import Judge
from engine.training.seats import Seat, seats_of


class Team:
    """Handles of all actors of one run."""

    def __init__(self, config: RunConfig, waiting: Waiting, run_dir: Path | None = None):
        """With `run_dir` the actors write drafts there (`engine.events.drafts`), and a Ray that is
        started keeps its files there (`engine.resources.ray_folder`)."""
        self.config = config
        self.run_dir = run_dir
        self.waiting = waiting
        self._clock = run_clock(config.agents, run_dir)
        self._disconnect = connect(config, waiting, run_dir)
        self.agents: dict[str, PolicyHandle] = {}
        """The learner of each agent; for a frozen agent, the actor that generates for it."""
        self.generators: dict[str, list[PolicyHandle]] = {}
        """Actors that generate for each agent in training: its generators, or its learner."""
        self.judge: Judge | None = None
        """Grades answers, if `judge.model` names one."""
        self._roles: dict[str, str] = {}
        """Role of each actor, by its id."""
        try:
            self._seat()
            self.verifier = VerifierPool(config, self._reserved(), waiting)
            if judge_in_use(config):
                self.judge = Judge(config.judge, waiting)
        except BaseException:
            self.close()
            raise

    @property
    def on_gpus(self) -> bool:
        """Whether any actor holds a GPU."""
        return any(bundle.resources.get("GPU") for bundle in self._bundles)

    @property
    def actors(self) -> list[PolicyHandle]:
        """Every actor that holds weights, without duplicates, learners first."""
        writing = [actor for actors in self.generators.values() for actor in actors]
        return list(dict.fromkeys([*self.agents.values(), *writing]))

    def ready(self) -> dict[str, Size]:
        """Waits until every actor has started; returns the size of each agent's weights.

        Raises:
            TeamError: an actor failed to start, with its first cause.
        """
        deadline = start_deadline(self.config.agents)
        by_actor = self.get([a.sizes.remote() for a in self.actors], "agents to load", deadline)
        self.verifier.ready()
        if self.judge:
            self.judge.ready()
        return {name: ChainMap(*by_actor)[name] for name in self.agents}

    def too_long(self, statements: Sequence[str]) -> dict[int, str]:
        """Returns, by index, why a statement exceeds the prompt limit of some agent."""
        actors = dict.fromkeys(self.agents.values())
        calls = [actor.too_long.remote(statements) for actor in actors]
        return dict(ChainMap(*self.get(calls, "statements to be measured")))

    def answer(self, call: AnswerCall) -> AnswerBatch:
        """Requests an answer to every request.

        With a `stream` the learners generate. Otherwise the requests of each agent are divided
        among its generators.
        """
        requests = call.requests
        batches: dict[PolicyHandle, dict[str, list[int]]] = {}
        for name, mine in requests.items():
            actors = [self.agents[name]] if call.stream is not None else self.generators[name]
            for index, actor in enumerate(actors):
                if positions := list(range(index, len(mine), len(actors))):
                    batches.setdefault(actor, {})[name] = positions
        calls = []
        for actor, parts in batches.items():
            texts = {name: [requests[name][i] for i in indices] for name, indices in parts.items()}
            future = actor.answer.remote(call.of(texts))
            count = sum(map(len, texts.values()))
            submitted(future, "generate", "answer", agents=", ".join(parts), answers=count)
            calls.append((future, parts))
        return AnswerBatch(calls)

    def encode(self, agent: str, shown: Sequence[tuple[Request, str]]) -> list[Generation | None]:
        """Returns programs as answers of an agent (`engine.policy.policy.Policy.encode`)."""
        with of_agents([agent]):
            calls = [self.agents[agent].encode.remote(agent, shown)]
            return self.get(calls, "agents to encode demonstrations")[0]

    def entropies(self, rows: Mapping[str, Sequence[TrainingRow]]) -> list[list[np.ndarray]]:
        """Returns the entropies at the output tokens of rows, in order, by the owner of the weights
        (`engine.policy.policy.Policy.entropies`)."""
        calls = [self.agents[owner].entropies.remote(owner, mine) for owner, mine in rows.items()]
        with of_agents(list(rows)):
            return self.get(calls, "agents to measure entropies")

    def sync(self, owners: Iterable[str]) -> list[Any]:
        """Sends the learners' weights to their generators, without waiting; returns the calls.

        The weights pass through the object store. Requests submitted to a generator from now on
        are answered with them, so the calls need only be checked for failures.
        """
        calls = []
        for owner in owners:
            learner = self.agents[owner]
            writing = [actor for actor in self.generators[owner] if actor is not learner]
            if writing:
                given = learner.give_weights.remote(owner)
                calls += [actor.take_weights.remote(owner, given) for actor in writing]
        return calls

    @contextmanager
    def wait_as(self, waiting: Waiting) -> Iterator[None]:
        """Reports waits within the block to `waiting`."""
        before = self.waiting
        self.waiting = self.verifier.waiting = waiting
        try:
            yield
        finally:
            self.waiting = self.verifier.waiting = before

    def get(self, futures: Any, name: str, deadline: Deadline = CALL) -> Any:
        """Returns the result of one or several calls; reports a long wait as `name`.

        Raises:
            TeamError: the deadline passed, or the actor failed (with its first cause).
        """
        return wait_for(futures, name, self.waiting, deadline, self._roles)

    def wait(self, calls: Sequence[Any], name: str) -> list[Any]:
        """Returns those of several calls that have ended, at least one, without checking for
        failures; reports a long wait as `name`.

        Raises:
            TeamError: none ended before the deadline.
        """
        return wait_for_any(calls, name, self.waiting)

    def save(self, directory: Path) -> None:
        """Saves the state of every set of weights under `directory/OWNER`."""
        calls = [submitted(a.save.remote(directory), "checkpoint", "save") for a in self.actors]
        self.get(calls, "agents to save")

    def restore(self, directory: Path, as_fork: bool = False) -> list[str]:
        """Restores every policy from `directory/OWNER`; returns how their platforms differ from
        those of the checkpoint.

        `as_fork`: restores only weights and optimizers, which the learners have.
        """
        actors = dict.fromkeys(self.agents.values()) if as_fork else self.actors
        futures = [actor.restore.remote(directory, as_fork) for actor in actors]
        return [line for lines in self.get(futures, "agents to restore") for line in lines]

    def end_step(self) -> list[Any]:
        """Marks the end of a step: draws after it are repeated if the next step is interrupted.

        The calls need only be checked for failures: later calls of an actor run after them.
        """
        return [actor.end_step.remote() for actor in self.actors]

    def close(self) -> None:
        """Stops the actors; a local Ray stops with them."""
        if self.judge:
            self.judge.close()
        self._disconnect()

    def _seat(self) -> None:
        """Starts every actor in its bundle of the run's placement group."""
        seats = seats_of(self.config, gpus_of(run_nodes()))
        self._placed = reserve(seats.bundles, self.config.compute, self.waiting)
        self._bundles = seats.bundles
        groups = weight_groups([_resolved(agent) for agent in self.config.agents])
        environment = runtime_environment(self.config.compute)
        positions = {agent.name: index for index, agent in enumerate(self.config.agents)}
        for owners, learning, writing in zip(
            actor_groups(self.config.agents), seats.learners, seats.generators, strict=True
        ):
            mine = [groups[owner] for owner in owners]
            seeds = [self.config.seed + 7919 * positions[owner] for owner in owners]

            def start(seat: Seat, number: int | None, mine=mine, seeds=seeds) -> PolicyHandle:
                options = {"max_concurrency": 1, "runtime_env": environment}
                options |= seated(self._placed, seat)
                # All have the same seeds: a node's answer does not depend on the actor that writes.
                actor = ray.remote(PolicyActor).options(**options)
                started = actor.remote(mine, self.config, seeds, number, self.run_dir, self._clock)
                role = "learner" if number is None else f"generator {number}"
                owned = " and ".join(group[0].name for group in mine)
                self._roles[started._actor_id.hex()] = f"{role} of {owned}"
                return cast(PolicyHandle, started)

            learner = start(learning, None)
            generators = [start(seat, number) for number, seat in enumerate(writing)]
            for agent in (agent for group in mine for agent in group):
                self.agents[agent.name] = learner
                self.generators[agent.name] = generators or [learner]
        self.agents = {agent.name: self.agents[agent.name] for agent in self.config.agents}

    def _reserved(self) -> dict[str, float]:
        """Returns the cores that agents hold on each node, by node id."""
        nodes = placement_group_table(self._placed)["bundles_to_node_id"]
        held: dict[str, float] = {}
        for number, bundle in enumerate(self._bundles):
            node = nodes[number]
            held[node] = held.get(node, 0.0) + bundle.resources["CPU"]
        return held


def _resolved(agent: AgentConfig) -> AgentConfig:
    """Returns the settings with absolute paths: relative ones are the driver's, not the actor's."""
    paths: dict[str, str] = {}
    if ":" not in agent.model:
        paths["model"] = str(Path(agent.model).absolute())
    if agent.chat_template is not None:
        paths["chat_template"] = str(Path(agent.chat_template).expanduser().absolute())
    return agent.model_copy(update=paths)
