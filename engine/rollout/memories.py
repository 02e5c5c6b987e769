"""The memories of a run, made by its settings."""

from __future__ import annotations

from engine.config.schema import RunConfig
from engine.credit.assign import Credit
from engine.curriculum import SAMPLERS
from engine.curriculum.sampler import Draws
from engine.memory.memories import Kept, Memories
from engine.memory.protocol import SeenTree
from engine.rollout.forest import GrowingTree
from engine.search.allocators import ALLOCATORS
from engine.search.strategies import STRATEGIES

SAMPLER, ALLOCATOR, STRATEGY = "training.sampler", "search.allocator", "search.strategy"
"""Settings whose methods have memories."""


def memories_of(config: RunConfig, problems: int) -> Memories:
    """Returns empty memories of the methods that the settings name; `problems` is the number of
    problems in the training split."""
    training, search = config.training, config.search
    sampler = SAMPLERS[training.sampler](problems, config.seed, training)
    kept = {SAMPLER: Kept(training.sampler, Draws(sampler))}
    if make := ALLOCATORS[search.allocator].memory:
        kept[ALLOCATOR] = Kept(search.allocator, make(search))
    if make := STRATEGIES[search.strategy].memory:
        kept[STRATEGY] = Kept(search.strategy, make(search))
    return Memories(kept)


def seen(tree: GrowingTree, credit: Credit) -> SeenTree:
    """Returns a tree of a step as memories see it."""
    nodes = [tree.written[node] for node in sorted(tree.written)]
    return SeenTree(
        problem=tree.number,
        nodes=[node.node for node in nodes],
        parents=[node.parent for node in nodes],
        agents=[node.agent for node in nodes],
        scores=[node.score for node in nodes],
        filtered=credit.filtered,
    )
