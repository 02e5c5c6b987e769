"""Objective of an update: what it minimises, and by which optimizer.

Invariant: no torch here: composers name both.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.config.agents import OptimizerConfig


@dataclass(frozen=True, slots=True)
class OptimizerGroup:
    """An AdamW of its own over a policy's weights, with moments of its own, from its first update
    on; its state is in the checkpoint by its name."""

    name: str
    settings: OptimizerConfig
    """Rate, schedule over the run, decay rates and the largest norm of a gradient."""


@dataclass(frozen=True, slots=True)
class Objective:
    """Of one update."""

    loss: str = ""
    """Policy loss, a name in `engine.losses.POLICY_LOSSES`; empty is `loss.policy`."""
    optimizer: OptimizerGroup | None = None
    """None is the one of `agents.NAME.optimizer`."""


DEFAULT = Objective()
"""The objective that a run's settings give."""
