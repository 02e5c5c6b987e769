"""One update from the whole batch: nothing is left out, and nothing is added."""

from __future__ import annotations

from collections.abc import Sequence

from engine.policy.learner.rows import TrainingRow
from engine.training.compose.composer import ComposeContext, Composition, Update


def compose(rows: Sequence[TrainingRow], context: ComposeContext) -> Composition:
    """Returns one update from all rows."""
    return Composition([Update(rows)])
