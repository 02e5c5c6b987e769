"""Verifier pool over the nodes of a cluster: one actor per node, each with its own sandbox.

Invariants:
- Work goes to the node with the lowest load per slot, in pieces, so that a slow node delays no
  more than a piece; programs that arrive while all nodes are busy queue for the next piece.
- Programs of a lost node are verified elsewhere; a verdict is never made up.
- A node that joins takes part once its sandbox has passed its self-check; a lost node does not
  return.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from engine.config.deadlines import ACTORS_START
from engine.config.schema import RunConfig
from engine.environments.types import Move, Settled
from engine.policy.handles import VerifierHandle
from engine.problems.problem import Problem
from engine.resources.bounds import bounds
from engine.rollout.verifier import Verifier
from engine.run.own_ray import run_nodes
from engine.run.spans import submitted
from engine.run.waits import (
    TeamError,
    Waiting,
    cause_of,
    ended_of,
    wait_for,
    wait_for_any,
)
from engine.sandbox.host.verify import Verification
from engine.sandbox.limits import SandboxCaps

PIECE = 4
"""Programs per slot in one piece of work."""
PIECES = 2
"""Most pieces in flight per node: one runs while the driver processes the other's verdicts."""


@dataclass(eq=False)
class NodeVerifier:
    """Verifier actor of one node, and its load."""

    node: str
    slots: int
    actor: VerifierHandle
    pieces: int = 0
    """Pieces in flight."""
    programs: int = 0
    """Programs in all of them."""


class VerifierPool:
    """Verifies programs on all nodes that have not been lost."""

    def __init__(self, config: RunConfig, reserved: dict[str, float], waiting: Waiting):
        """`reserved` holds the cores that agents hold on each node, by node id."""
        self.config, self.reserved, self.waiting = config, reserved, waiting
        self.caps = SandboxCaps.from_environment()
        """Those of the run's own process apply on every node."""
        self.lost: list[str] = []
        """Messages about lost nodes; the caller that reports them clears the list."""
        self._tickets = itertools.count()
        self._programs: deque[tuple[int, Move]] = deque()
        """Queued programs, or other actions, with their tickets."""
        self._calls: dict[Any, tuple[NodeVerifier, list[tuple[int, Move]]]] = {}
        self._verdicts: dict[int, Settled] = {}
        """Verdicts that are not taken yet, by ticket."""
        self._joining: dict[Any, NodeVerifier] = {}
        """Nodes that are not ready yet, by the call of their self-check."""
        nodes = _nodes()
        self._seen = set(nodes)
        self.verifiers = [self._start(node, len(nodes)) for node in nodes.values()]

    def ready(self) -> None:
        """Waits until the sandbox of every node has passed its self-check.

        A node whose sandbox fails it is left out, and reported in `lost`.

        Raises:
            TeamError: no node can verify.
        """
        name = "sandbox to pass its self-check"
        checks = [(verifier, verifier.actor.settle.remote([])) for verifier in self.verifiers]
        for verifier, check in checks:
            try:
                wait_for(check, name, self.waiting, ACTORS_START)
            except TeamError as error:
                self._lose(verifier, str(error))

    def renew(self) -> None:
        """Adds nodes that have joined the cluster, without waiting for their self-checks."""
        nodes = _nodes()
        for name in nodes.keys() - self._seen:
            verifier = self._start(nodes[name], max(2, len(nodes)))
            self._joining[verifier.actor.settle.remote([])] = verifier
        self._seen |= nodes.keys()
        for check in ended_of(list(self._joining)):
            verifier = self._joining.pop(check)
            try:
                ray.get(check)
                self.verifiers.append(verifier)
            except ray.exceptions.RayError as error:
                self._report_lost(verifier, cause_of(error))

    def verify(
        self, programs: Sequence[tuple[Problem, str]], name: str = "sandbox"
    ) -> list[Verification]:
        """Returns verdicts on programs that no agent wrote, in order; those of `submit` are
        verified concurrently.

        Raises:
            TeamError: the deadline passed, or no node is left; with the first cause.
        """
        tickets = self.submit([Move(problem, None, program) for problem, program in programs])
        verdicts: dict[int, Settled] = {}
        while len(verdicts) < len(tickets):
            ended = wait_for_any(self.calls, name, self.waiting)
            verdicts |= self.take(ended, tickets)
        return [verdicts[ticket].outcome for ticket in tickets]

    def submit(self, moves: Sequence[Move]) -> list[int]:
        """Submits actions; returns tickets for their verdicts, which `take` returns."""
        tickets = [next(self._tickets) for _ in moves]
        self._programs += zip(tickets, moves, strict=True)
        self._send()
        return tickets

    @property
    def calls(self) -> list[Any]:
        """Calls in flight; pass those that have ended to `take`."""
        return list(self._calls)

    def take(self, ended: Collection[Any], tickets: Collection[int]) -> dict[int, Settled]:
        """Processes ended calls; returns the verdicts for these tickets that are known by now.
        Those for other tickets wait for the caller that submitted their programs.

        Raises:
            TeamError: no node is left; with the first cause.
        """
        for call in ended:
            if call not in self._calls:
                continue  # of an agent
            verifier, piece = self._calls.pop(call)
            verifier.pieces -= 1
            verifier.programs -= len(piece)
            try:
                verdicts = ray.get(call)
            except ray.exceptions.RayError as error:
                self._programs.extendleft(reversed(piece))
                self._lose(verifier, f"sandbox of node {verifier.node}: {cause_of(error)}")
            else:
                self._verdicts |= zip((ticket for ticket, _ in piece), verdicts, strict=True)
        self._send()
        available = [ticket for ticket in tickets if ticket in self._verdicts]
        return {ticket: self._verdicts.pop(ticket) for ticket in available}

    def tier(self) -> str:
        """Returns the weakest tier of all nodes: `none`, `restricted` or `full`."""
        tiers = [
            wait_for(verifier.actor.tier.remote(), "sandbox to name its walls", self.waiting)
            for verifier in self.verifiers
        ]
        return min(tiers, key=("none", "restricted", "full").index)

    def _start(self, node: dict[str, Any], nodes: int) -> NodeVerifier:
        slots = self.config.sandbox.workers
        if nodes == 1 and (self.config.compute.ray_address or os.environ.get("RAY_ADDRESS")):
            refuse_beyond_node(self.caps.of_run(self.config), node["Resources"])
        if nodes > 1:
            spare = int(node["Resources"]["CPU"] - self.reserved.get(node["NodeID"], 0.0))
            slots = max(1, spare)
        where = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        options = {"num_cpus": 0, "scheduling_strategy": where}
        actor = ray.remote(Verifier).options(**options).remote(self.config, slots, self.caps)
        return NodeVerifier(node["NodeManagerAddress"], slots, cast(VerifierHandle, actor))

    def _send(self) -> None:
        while self._programs and (verifier := self._least_loaded()):
            # All programs at once if only one node verifies: its slots divide the work better.
            is_single = len(self.verifiers) == 1
            most = len(self._programs) if is_single else PIECE * verifier.slots
            piece = [self._programs.popleft() for _ in range(min(most, len(self._programs)))]
            verifier.pieces += 1
            verifier.programs += len(piece)
            call = verifier.actor.settle.remote([move for _, move in piece])
            submitted(call, "verify", "verify", node=verifier.node, programs=len(piece))
            self._calls[call] = verifier, piece

    def _least_loaded(self) -> NodeVerifier | None:
        """Returns the least loaded node that can take another piece; None if there is none."""
        free = [verifier for verifier in self.verifiers if verifier.pieces < PIECES]
        return min(free, key=lambda verifier: verifier.programs / verifier.slots, default=None)

    def _lose(self, verifier: NodeVerifier, why: str) -> None:
        if verifier in self.verifiers:
            self.verifiers.remove(verifier)
            self._report_lost(verifier, why)
        if not self.verifiers:
            raise TeamError(why)

    def _report_lost(self, verifier: NodeVerifier, why: str) -> None:
        self.lost.append(f"node {verifier.node} verifies no more: {why}")


def refuse_beyond_node(config: RunConfig, resources: Mapping[str, float]) -> None:
    """Raises `TeamError` if the programs of a run are more than the only node of a cluster runs; of
    this machine that was found before (`engine.resources.requirements`)."""
    memory = int(resources.get("memory", 0) + resources.get("object_store_memory", 0))
    for one in bounds(config, int(resources["CPU"]), memory):
        if one.path == "sandbox.workers" and not one.fits:
            raise TeamError(f"{one.what}: {one.amount}, and the node has {one.has}; {one.remedy}")


def _nodes() -> dict[str, dict[str, Any]]:
    """Returns the nodes of the run that can verify, alive and with a core, by id."""
    return {node["NodeID"]: node for node in run_nodes() if node["Resources"].get("CPU", 0) >= 1}
