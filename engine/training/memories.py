"""The memories of a training: those of its trees (`engine.rollout.memories`) and its composer's."""

from __future__ import annotations

from engine.config.schema import RunConfig
from engine.memory.memories import Kept, Memories
from engine.rollout.memories import memories_of
from engine.training.compose import COMPOSERS

COMPOSE = "training.compose"
"""Setting whose method may have a memory."""


def training_memories(config: RunConfig, problems: int) -> Memories:
    """Returns the empty memories of a training; `problems` is the number of problems in its
    training split."""
    return memories_of(config, problems, composer_memory(config))


def composer_memory(config: RunConfig) -> dict[str, Kept]:
    """Returns the empty memory of a run's composer by its setting; nothing if it has none."""
    name = config.training.compose
    make = COMPOSERS[name].memory
    return {COMPOSE: Kept(name, make(config))} if make else {}
