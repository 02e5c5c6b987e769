"""Verification on every node of a cluster: one actor each, with a sandbox of its own.

Invariants:
- Work goes to the node that has least of it for its slots, in pieces, so that a slow node holds up
  a piece and no more; what comes while all have enough waits, and is the next piece.
- What a node had when it was lost is verified elsewhere; a verdict is never made up.
- A node that joins takes part once its sandbox has passed its self-check; one that was lost does
  not come back.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from engine.config.schema import RunConfig
from engine.policy.handles import VerifierHandle
from engine.problems.problem import Problem
from engine.run.waits import (
    START_DEADLINE,
    TeamError,
    Waiting,
    cause_of,
    ended_of,
    wait_for,
    wait_for_any,
)
from engine.sandbox.host.verify import Verification
from engine.sandbox.limits import SandboxCaps
from engine.training.actors import Verifier

PIECE = 4
"""Programs per slot in one piece of work."""
PIECES = 2
"""That one node has at most: it works on one while the verdicts of the other are looked at."""

Program = tuple[Problem, str]


@dataclass(eq=False)
class Place:
    """The verifier of one node."""

    node: str
    slots: int
    actor: VerifierHandle
    pieces: int = 0
    """Under way."""
    programs: int = 0
    """In all of them."""


class VerifierPool:
    """Verifies programs on whatever nodes are left."""

    def __init__(self, config: RunConfig, reserved: dict[str, float], waiting: Waiting):
        """`reserved` are the cores of each node, by its id, that agents hold."""
        self.config, self.reserved, self.waiting = config, reserved, waiting
        self.caps = SandboxCaps.from_environment()
        """Those of the run's own process, on every node."""
        self.lost: list[str] = []
        """What became of nodes that verify no more; whoever tells of it empties the list."""
        self._tickets = itertools.count()
        self._programs: deque[tuple[int, Program]] = deque()
        """Those that wait, with their tickets."""
        self._calls: dict[Any, tuple[Place, list[tuple[int, Program]]]] = {}
        self._verdicts: dict[int, Verification] = {}
        """What ended and was not taken yet."""
        self._joining: dict[Any, Place] = {}
        """Nodes that are not ready yet, by the call of their self-check."""
        nodes = _nodes()
        self._seen = set(nodes)
        self.places = [self._place(node, len(nodes)) for node in nodes.values()]

    def ready(self) -> None:
        """Wait until the sandbox of every node has passed its self-check.

        A node on which it does not is left out, and told in `lost`.

        Raises:
            TeamError: no node can verify.
        """
        name = "sandbox to pass its self-check"
        checks = [(place, place.actor.verify.remote([])) for place in self.places]
        for place, check in checks:
            try:
                wait_for(check, name, self.waiting, START_DEADLINE)
            except TeamError as error:
                self._lose(place, str(error))

    def renew(self) -> None:
        """Let nodes take part that have joined the cluster; nobody waits for them."""
        nodes = _nodes()
        for name in nodes.keys() - self._seen:
            place = self._place(nodes[name], max(2, len(nodes)))
            self._joining[place.actor.verify.remote([])] = place
        self._seen |= nodes.keys()
        for check in ended_of(list(self._joining)):
            place = self._joining.pop(check)
            try:
                ray.get(check)
                self.places.append(place)
            except ray.exceptions.RayError as error:
                self._tell(place, cause_of(error))

    def verify(self, programs: Sequence[Program], name: str = "sandbox") -> list[Verification]:
        """Verdicts, in order; what `ask` asked for is verified beside.

        Raises:
            TeamError: the deadline passed, or no node is left; with its first cause.
        """
        tickets = self.ask(programs)
        others: dict[int, Verification] = {}
        found: dict[int, Verification] = {}
        mine = set(tickets)
        while found.keys() != mine:
            for ticket, verdict in self.taken(wait_for_any(self.calls, name, self.waiting)).items():
                (found if ticket in mine else others)[ticket] = verdict
        self._verdicts |= others
        return [found[ticket] for ticket in tickets]

    def ask(self, programs: Sequence[Program]) -> list[int]:
        """Have programs verified; tickets for their verdicts, which `taken` gives."""
        tickets = [next(self._tickets) for _ in programs]
        self._programs += zip(tickets, programs, strict=True)
        self._send()
        return tickets

    @property
    def calls(self) -> list[Any]:
        """Under way; one that has ended is given to `taken`."""
        return list(self._calls)

    def taken(self, ended: Iterable[Any]) -> dict[int, Verification]:
        """The verdicts of calls that have ended, and any that nobody took before, by ticket.

        Raises:
            TeamError: no node is left; with its first cause.
        """
        found, self._verdicts = self._verdicts, {}
        for call in ended:
            place, piece = self._calls.pop(call)
            place.pieces -= 1
            place.programs -= len(piece)
            try:
                verdicts = ray.get(call)
            except ray.exceptions.RayError as error:
                self._programs.extendleft(reversed(piece))
                self._lose(place, f"sandbox of node {place.node}: {cause_of(error)}")
            else:
                found |= zip((ticket for ticket, _ in piece), verdicts, strict=True)
        self._send()
        return found

    def tier(self) -> str:
        """The weakest of the nodes' walls: `none`, `restricted` or `full`."""
        tiers = [
            wait_for(place.actor.tier.remote(), "sandbox to name its walls", self.waiting)
            for place in self.places
        ]
        return min(tiers, key=("none", "restricted", "full").index)

    def _place(self, node: dict[str, Any], nodes: int) -> Place:
        slots = self.config.sandbox.workers
        if nodes > 1:
            spare = int(node["Resources"]["CPU"] - self.reserved.get(node["NodeID"], 0.0))
            slots = max(1, spare)
        where = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        options = {"num_cpus": 0, "scheduling_strategy": where}
        actor = ray.remote(Verifier).options(**options).remote(self.config, slots, self.caps)
        return Place(node["NodeManagerAddress"], slots, cast(VerifierHandle, actor))

    def _send(self) -> None:
        while self._programs and (place := self._free_place()):
            # All at once if one node verifies: its slots divide the work better.
            alone = len(self.places) == 1
            most = len(self._programs) if alone else PIECE * place.slots
            piece = [self._programs.popleft() for _ in range(min(most, len(self._programs)))]
            place.pieces += 1
            place.programs += len(piece)
            call = place.actor.verify.remote([program for _, program in piece])
            self._calls[call] = place, piece

    def _free_place(self) -> Place | None:
        """The least loaded of those that may have more."""
        free = [place for place in self.places if place.pieces < PIECES]
        return min(free, key=lambda place: place.programs / place.slots, default=None)

    def _lose(self, place: Place, why: str) -> None:
        if place in self.places:
            self.places.remove(place)
            self._tell(place, why)
        if not self.places:
            raise TeamError(why)

    def _tell(self, place: Place, why: str) -> None:
        self.lost.append(f"node {place.node} verifies no more: {why}")


def _nodes() -> dict[str, dict[str, Any]]:
    """The nodes that can verify, by their ids."""
    return {
        node["NodeID"]: node
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
    }
