"""Planting: the trees of the next training problems, by the run's sampler, allocator and strategy.

Invariant: what a tree is given (problem, budget, what its strategy knows of earlier trees) is fixed
when it is planted. Trees that replace filtered ones have `search.nodes_per_tree` nodes each,
whatever the allocator.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.config.schema import RunConfig
from engine.curriculum.sampler import Draws
from engine.memory.memories import Memories
from engine.problems.source import ProblemSet
from engine.rollout.forest import Forest, training_score
from engine.rollout.memories import ALLOCATOR, SAMPLER, STRATEGY
from engine.search.allocators import allocated


class Planting:
    """Plants the trees of one run."""

    def __init__(self, config: RunConfig, problems: ProblemSet, memories: Memories):
        self.config = config
        self.problems = problems
        self._memories = memories
        self._names = tuple(agent.name for agent in config.agents)

    def drawn(self, first: int, count: int) -> list[int]:
        """Returns the numbers of the problems of `count` draws, from the draw `first` on."""
        draws = self._memories[SAMPLER]
        assert isinstance(draws, Draws)
        return draws.take(first, count)

    def forest(self, numbers: Sequence[int], step: int, first: int, refill: bool) -> Forest:
        """Returns new trees of the problems of these numbers; `first` is the number of trees that
        the step opened before, `refill` whether they replace filtered ones."""
        config, search = self.config, self.config.search
        judge = training_score(config.credit)
        batch, strategy = self.problems.numbered(numbers), self._memories.get(STRATEGY)
        seed = [config.seed, step]
        forest = Forest(batch, self._names, search, judge, seed, first, strategy)
        counts = None if refill else allocated(numbers, search, self._memories.get(ALLOCATOR))
        for index, (tree, number) in enumerate(zip(forest.trees, numbers, strict=True)):
            tree.number = number
            tree.nodes = counts[index] if counts else None
        return forest

    def prepare(self, first: int, count: int) -> None:
        """Generates the problems that come next in the training split, while others are written; a
        problem that is drawn out of this order is generated when it is drawn."""
        self.problems.numbered(range(first, first + count))
