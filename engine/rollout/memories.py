"""The memories of a run, made by its settings."""

from __future__ import annotations

from collections.abc import Mapping

from engine.config.method_needs import columns_needed
from engine.config.schema import RunConfig
from engine.credit import ADVANTAGES
from engine.curriculum import SAMPLERS
from engine.curriculum.sampler import Draws
from engine.memory.memories import Kept, Memories
from engine.memory.pass_rates import PassRates
from engine.search.allocators import ALLOCATORS
from engine.search.strategies import STRATEGIES

SAMPLER, ALLOCATOR, STRATEGY = "training.sampler", "search.allocator", "search.strategy"
ADVANTAGE = "credit.advantage"
"""Settings whose methods have memories."""
RATES = "pass_rates"
"""Column that is made of a memory of its own, where a method needs it."""


def memories_of(
    config: RunConfig, problems: int, others: Mapping[str, Kept] | None = None
) -> Memories:
    """Returns empty memories of the methods that the settings name; `problems` is the number of
    problems in the training split, `others` the memories of rooms that stand on this one."""
    training, search = config.training, config.search
    sampler = SAMPLERS[training.sampler](problems, config.seed, training)
    kept = {SAMPLER: Kept(training.sampler, Draws(sampler))}
    if make := ALLOCATORS[search.allocator].memory:
        kept[ALLOCATOR] = Kept(search.allocator, make(search))
    if make := STRATEGIES[search.strategy].memory:
        kept[STRATEGY] = Kept(search.strategy, make(search))
    if make := ADVANTAGES[config.credit.advantage].memory:
        kept[ADVANTAGE] = Kept(config.credit.advantage, make(config.credit))
    if RATES in columns_needed(config):
        kept[RATES] = Kept(RATES, PassRates())
    return Memories({**kept, **(others or {})})
