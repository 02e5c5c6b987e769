"""Sampling for learnability: problems that are sometimes solved are drawn more often.

    P(problem) ~ p (1 - p)
with p the pass rate at its last visit; p (1 - p) is the variance of its score, and 0 where a group
has nothing to compare. Source: No Regrets, arXiv 2408.15099, section 4; for language models, Foster
et al., arXiv 2502.12272. They measure p by extra rollouts; ours are the rates of the run's own
trees (`engine.memory.pass_rates`), so a problem that was never visited counts as p = 1/2, the
largest weight. `training.learnability.explore` of the draws are uniform, so that a rate that has
become wrong is measured again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from engine.config.base import Settings
from engine.config.misfits import Misfit, rarely_seen
from engine.config.training import TrainingConfig
from engine.memory.pass_rates import UNKNOWN, PassRates
from engine.memory.protocol import OnFork, SeenTree

if TYPE_CHECKING:
    from engine.config.schema import RunConfig

STREAM = 2
"""Ends the seeds of its random numbers, which thereby differ from those of any tree."""


class Options(Settings):
    """Sampling for learnability."""

    explore: float = Field(0.2, ge=0, le=1)
    """Share of draws that disregard pass rates."""


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Warns where hardly anything is known of a problem."""
    yield from rarely_seen(config, "training.sampler")


def sampler(problems: int, seed: int, training: TrainingConfig) -> Learnability:
    """Returns the sampler of a run."""
    return Learnability(problems, seed, training.options("sampler").explore)


class Learnability:
    """Draws with replacement, by the pass rates of earlier steps."""

    on_fork = OnFork.SAME_PROBLEMS

    def __init__(self, problems: int, seed: int, explore: float):
        self._problems = problems
        self._seed = seed
        self._explore = explore
        self._rates = PassRates()
        self._cumulated_P: np.ndarray | None = None
        """Cumulated probabilities, until rates change."""

    def probabilities(self) -> np.ndarray:
        """Returns the probability of each problem of the training split."""
        visited = (self._rates.visited(problem) for problem in range(self._problems))
        rates_P = np.array([UNKNOWN if rate is None else rate for rate in visited])
        weights_P = rates_P * (1.0 - rates_P)
        uniform = 1.0 / self._problems
        if (total := weights_P.sum()) == 0.0:
            return np.full(self._problems, uniform)
        return (1.0 - self._explore) * weights_P / total + self._explore * uniform

    def next(self, position: int) -> int:
        if self._cumulated_P is None:
            self._cumulated_P = np.cumsum(self.probabilities())
        drawn = np.random.default_rng([self._seed, position, STREAM]).random()
        index = int(np.searchsorted(self._cumulated_P, drawn, side="right"))
        return min(index, self._problems - 1)  # the sum may be a rounding error below 1

    def observe(self, step: int, trees: Sequence[SeenTree]) -> None:
        self._rates.observe(step, trees)
        self._cumulated_P = None

    def state(self) -> dict[str, Any]:
        return self._rates.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self._rates.restore(state)
        self._cumulated_P = None
