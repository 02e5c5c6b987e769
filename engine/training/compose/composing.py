"""The composer of a run: what it makes of every policy's batch in a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.config.schema import RunConfig
from engine.memory.memories import Memories
from engine.memory.protocol import SeenTree
from engine.policy.learner.rows import TrainingRow
from engine.training.compose import COMPOSERS
from engine.training.compose.composer import (
    ComposeContext,
    Composition,
    Demonstrate,
    checked,
    stream,
)
from engine.training.memories import COMPOSE


class Composing:
    """Composes the updates of all learning policies by the method of `training.compose`."""

    def __init__(self, config: RunConfig, memories: Memories, demonstrate: Demonstrate):
        self._config = config
        self._memories = memories
        self._demonstrate = demonstrate
        self._method = COMPOSERS[config.training.compose]
        self.row_columns = sorted(self._method.needs | set(config.loss.row_columns))
        """Columns that composer and loss need of every row."""

    def composed(
        self, batches: Mapping[str, list[TrainingRow]], step: int, trees: Sequence[SeenTree]
    ) -> dict[str, Composition]:
        """Returns a composition of each batch, by owner of the weights; `trees` are all of the
        step.

        Raises:
            ValueError: the composer loses rows without a reason.
        """
        plan = self._config.training
        compositions: dict[str, Composition] = {}
        for policy, (owner, rows) in enumerate(batches.items()):
            context = ComposeContext(
                owner,
                self._config,
                stream(self._config.seed, step, policy),
                trees,
                self._memories.get(COMPOSE),
                self._demonstrate,
                plan.options("compose"),
            )
            composition = self._method.compose(rows, context)
            compositions[owner] = checked(plan.compose, rows, composition, self._config.loss)
        return compositions
