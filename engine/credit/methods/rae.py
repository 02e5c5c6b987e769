"""Role-conditioned advantage (SPIRAL, arXiv 2506.24119, section 3.3; code spiral-rl/spiral).

    A = R - b[role],   then   b[role] <- decay b[role] + (1 - decay) R,   b_0 = 0
The baseline before its update is used, so that an answer is never compared with itself. No group is
compared: a tree of equal scores, or of one node, teaches as well, so `credit.dynamic_filter` is
refused. Ours: an agent is a role, every node is an episode of it, in the order of creation, and R
is its reward after shaping and penalties.

The baselines are a memory (`engine.memory.protocol`): they move while a step's credit is computed,
tree after tree, and a fork goes on with them, as with the agents' weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from engine.config.base import Settings
from engine.config.credit import CreditConfig
from engine.config.golden_kind import Case, Kind
from engine.config.misfits import Misfit, filtered_trees
from engine.credit.group import GroupContext
from engine.memory.protocol import OnFork, SeenTree

if TYPE_CHECKING:
    from engine.config.schema import RunConfig

NEEDS = {"agents"}


class Options(Settings):
    """RAE."""

    decay: float = Field(0.95, ge=0, le=1)
    """Share of a role's baseline that an answer leaves."""


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Refuses the filter of trees that are compared with earlier ones."""
    yield from filtered_trees(config, "credit.advantage", "compares every tree with earlier ones")


def memory(credit: CreditConfig) -> RoleBaselines:
    """Returns the baselines of a run that begins."""
    return RoleBaselines(credit.options("advantage").decay)


def over_group(rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
    """Returns advantages_N of a tree by itself, over baselines that begin with it."""
    return RoleBaselines(context.options.decay).over_group(rewards_N, context)


class RoleBaselines:
    """Moving averages of the rewards of each role, and the advantages over them."""

    on_fork = OnFork.KEEP

    def __init__(self, decay: float, baselines: Mapping[str, float] | None = None):
        """`decay`, 0 to 1, is the weight of what was there before."""
        self._decay = decay
        self.baselines = dict(baselines or {})

    def advantage(self, role: str, reward: float) -> float:
        """Returns the advantage of one reward, and moves the role's baseline."""
        before = self.baselines.get(role, 0.0)
        self.baselines[role] = self._decay * before + (1.0 - self._decay) * reward
        return reward - before

    def over_group(self, rewards_N: np.ndarray, context: GroupContext) -> np.ndarray:
        """Returns advantages_N of a tree, and moves the baselines of its agents."""
        pairs = zip(context["agents"], rewards_N.tolist(), strict=True)
        return np.array([self.advantage(agent, reward) for agent, reward in pairs])

    def observe(self, step: int, trees: Sequence[SeenTree]) -> None:
        """Has nothing to take in: the step's credit has moved the baselines."""

    def state(self) -> dict[str, Any]:
        """Returns the baselines by role."""
        return {"baselines": dict(self.baselines)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replaces the baselines."""
        self.baselines = dict(state["baselines"])


def _golden(case: Case) -> Any:
    inputs = case["inputs"]
    baselines = RoleBaselines(inputs["decay"], inputs.get("baselines"))
    advantages = [
        {
            role: baselines.advantage(f"{episode['game']}/{role}", reward)
            for role, reward in episode["returns"].items()
        }
        for episode in inputs["episodes"]
    ]
    return {"advantages": advantages, "baselines": baselines.baselines}


GOLDEN = {"rae": Kind(_golden, "decay episodes", "baselines")}
