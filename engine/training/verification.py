"""Verification on every node of a cluster: one actor each, with a sandbox of its own.

Invariants:
- Work goes to the node that has least of it for its slots, in pieces, so that a slow node holds up
  a piece and no more.
- What a node had when it was lost is verified elsewhere; a verdict is never made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from engine.config import RunConfig
from engine.problems.problem import Problem
from engine.sandbox.verify import Verification
from engine.training.actors import Verifier
from engine.training.waits import (
    CALL_DEADLINE,
    REPORT_AFTER,
    START_DEADLINE,
    TeamError,
    Waiting,
    cause_of,
    wait_for,
)

PIECE = 4
"""Programs per slot in one piece of work."""

Program = tuple[Problem, str]


@dataclass(eq=False)
class Place:
    """The verifier of one node."""

    node: str
    slots: int
    actor: Any
    programs: int = 0
    """Under way."""


class VerifierPool:
    """Verifies programs on whatever nodes are left."""

    def __init__(self, config: RunConfig, reserved: dict[str, float], waiting: Waiting):
        """`reserved` are the cores of each node, by its id, that agents hold."""
        self.waiting = waiting
        self.lost: list[str] = []
        """What became of nodes that verify no more; whoever tells of it empties the list."""
        nodes = [n for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) >= 1]
        self.places = [self._place(config, node, reserved, len(nodes)) for node in nodes]

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

    def verify(
        self, programs: Sequence[Program], name: str = "sandbox", deadline: float = CALL_DEADLINE
    ) -> list[Verification]:
        """Verdicts, in order.

        Raises:
            TeamError: the deadline passed, or no node is left; with its first cause.
        """
        verdicts: dict[int, Verification] = {}
        pieces = self._pieces(len(programs))
        under_way: dict[Any, tuple[Place, range]] = {}
        waited = 0.0
        while pieces or under_way:
            while pieces and (place := self._free_place()):
                piece = pieces.pop()
                future = place.actor.verify.remote([programs[i] for i in piece])
                place.programs += len(piece)
                under_way[future] = place, piece
            ended, _ = ray.wait(list(under_way), num_returns=1, timeout=REPORT_AFTER)
            if not ended:
                waited = self._still_waiting(name, waited, deadline)
            for future in ended:
                place, piece = under_way.pop(future)
                place.programs -= len(piece)
                try:
                    verdicts |= zip(piece, ray.get(future), strict=True)
                except (ray.exceptions.RayActorError, ray.exceptions.RayTaskError) as error:
                    self._lose(place, f"{name}: {cause_of(error)}")
                    pieces.append(piece)
        if waited:
            self.waiting("", 0.0)
        return [verdicts[i] for i in range(len(programs))]

    def tier(self) -> str:
        """The weakest of the nodes' walls: `none`, `restricted` or `full`."""
        tiers = [
            wait_for(place.actor.tier.remote(), "sandbox to name its walls", self.waiting)
            for place in self.places
        ]
        return min(tiers, key=("none", "restricted", "full").index)

    @staticmethod
    def _place(
        config: RunConfig, node: dict[str, Any], reserved: dict[str, float], nodes: int
    ) -> Place:
        slots = config.sandbox.workers
        if nodes > 1:
            spare = int(node["Resources"]["CPU"] - reserved.get(node["NodeID"], 0.0))
            slots = max(1, spare)
        where = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        options = {"num_cpus": 0, "scheduling_strategy": where}
        actor = ray.remote(Verifier).options(**options).remote(config, slots)
        return Place(node["NodeManagerAddress"], slots, actor)

    def _pieces(self, programs: int) -> list[range]:
        """All in one if one node verifies: its slots divide the work better."""
        if len(self.places) == 1:
            return [range(programs)]
        size = PIECE * min(place.slots for place in self.places)
        return [range(i, min(programs, i + size)) for i in range(0, programs, size)]

    def _free_place(self) -> Place | None:
        """The least loaded, unless every one has as much waiting as it works on."""
        place = min(self.places, key=lambda place: place.programs / place.slots)
        return place if place.programs < 2 * PIECE * place.slots else None

    def _lose(self, place: Place, why: str) -> None:
        if place in self.places:
            self.places.remove(place)
            self.lost.append(f"node {place.node} verifies no more: {why}")
        if not self.places:
            raise TeamError(why)

    def _still_waiting(self, name: str, waited: float, deadline: float) -> float:
        if waited == 0.0:
            self.waiting(name, deadline)
        waited += REPORT_AFTER
        if waited >= deadline:
            self.waiting("", 0.0)
            raise TeamError(f"waited {deadline:.0f} s for {name}; look at the load of the machine")
        return waited
