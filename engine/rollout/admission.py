"""Admission: how much generation may be under way, and when a step has enough of it.

- Trees (APRIL, arXiv 2509.18521): a step plants `training.extra_trees` more than it takes, ends
  with the last one that it needs, and leaves the others to the next step, ahead of new ones.
- Steps (AReaL, Fu et al., arXiv 2505.24298, section 5.1): with i updates in the generators' weights
  the N-th tree may begin if floor((N - 1) / B) <= i + eta, where B trees make a step; of whole
  steps, step k may begin if k - 1 <= i + eta. `training.overlap` is an eta of
  `training.steps_ahead`, and without it eta is 0: generation and learning alternate.

Invariant: the answers are pure functions of settings and counts, and there is room for a tree
whenever a step lacks one and nothing is in flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from engine.config.training import TrainingConfig


@dataclass(frozen=True, slots=True)
class Flow:
    """Trees under way, as one step sees them."""

    missing: int
    """Number of complete trees that the step lacks."""
    in_flight: int
    """Number of trees that no step has taken and this one may take, complete ones included."""
    whole: int = 0
    """Number of complete ones among them."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The limits of one run."""

    extra: int
    """Number of trees in flight beyond those that a step needs."""
    ahead: int
    """Number of steps by which generation may be ahead of the weights: eta."""

    @classmethod
    def of(cls, training: TrainingConfig) -> Self:
        return cls(training.extra_trees, training.steps_ahead if training.overlap else 0)

    def room(self, flow: Flow) -> int:
        """Returns how many trees to plant."""
        return max(0, flow.missing + self.extra - flow.in_flight)

    def enough(self, flow: Flow) -> bool:
        """Returns whether the step has the complete trees that it lacks, or all that there are."""
        return flow.whole >= min(flow.missing, flow.in_flight)

    def may_begin(self, step: int, updates: int) -> bool:
        """Returns whether trees of a step, counted from 1, may begin with the weights of that many
        updates."""
        return step - 1 <= updates + self.ahead
