"""Types of a composer, and what every composition has to satisfy.

Invariant: a row of the batch is learned from, or it leaves with a named reason that is counted
(`checked`). The counts are in the event of the step's end, and charted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from engine.config.loss import LossConfig
from engine.config.methods import NAME, registry
from engine.config.schema import RunConfig
from engine.memory.protocol import Memory, SeenTree
from engine.policy.learner.rows import TrainingRow

_STREAM = 21
"""Number of the composers' random streams among those of a run's seed."""


class RowKind(StrEnum):
    """Where the rows of an update come from."""

    ROLLOUT = "rollout"
    """The batch of this step."""
    REPLAY = "replay"
    """Earlier steps, kept by a composer's memory."""


@dataclass(frozen=True)
class Update:
    """One update of a policy; one without rows is not made."""

    rows: Sequence[TrainingRow]
    """Rows to learn from, a row as often as it occurs."""
    kind: RowKind = RowKind.ROLLOUT
    loss: str = ""
    """Policy loss, a name in `engine.losses.POLICY_LOSSES`; empty is `loss.policy`."""


@dataclass(frozen=True)
class Composition:
    """What a composer makes of a batch."""

    updates: Sequence[Update]
    """They run in order."""
    left: Mapping[str, int] = field(default_factory=dict)
    """Number of the batch's rows that leave, by reason: a name of lower-case letters and _."""

    def rows(self) -> dict[str, int]:
        """Returns how many rows are learned from, repeated ones included, by kind."""
        counts: dict[str, int] = {}
        for update in self.updates:
            if update.rows:
                counts[update.kind] = counts.get(update.kind, 0) + len(update.rows)
        return counts


@dataclass(frozen=True)
class ComposeContext:
    """What a composer reads beside the batch."""

    owner: str
    """Agent that owns the weights."""
    config: RunConfig
    rng: np.random.Generator
    """Random numbers of this policy in this step, which no other part of a run draws from."""
    trees: Sequence[SeenTree] = ()
    """All trees of the step, filtered ones included; rows may be of earlier ones."""
    memory: Any = None
    """The composer's, if it has one."""
    options: Any = None
    """The composer's own `Options`; None if it has none."""


Compose = Callable[[Sequence[TrainingRow], ComposeContext], Composition]
"""(rows, context) -> composition. `rows` are the batch that the policy's buffer gave, or none while
it holds none."""


@dataclass(frozen=True)
class Composer:
    """A method of `engine.training.compose.methods`."""

    compose: Compose
    memory: Callable[[RunConfig], Memory] | None = None
    """Returns an empty memory."""


def composer_of(module: Any) -> Composer:
    """Returns the composer that a module holds: `compose` and, if it has one, `memory`.

    Raises:
        ValueError: it holds none.
    """
    if not callable(compose := getattr(module, "compose", None)):
        raise ValueError("has no function compose(rows, context)")
    return Composer(compose, getattr(module, "memory", None))


def checked(
    name: str, rows: Sequence[TrainingRow], composition: Composition, loss: LossConfig
) -> Composition:
    """Returns the composition that the composer of this name made of a batch; `loss` is the run's.

    Raises:
        ValueError: a row is neither learned from nor counted, a reason is no name, or a loss is
            unknown or needs what this run does not have.
    """
    learned = {id(row) for update in composition.updates for row in update.rows}
    missing = sum(1 for row in rows if id(row) not in learned)
    left = sum(composition.left.values())
    if missing != left:
        raise ValueError(
            f"training.compose = {name!r}: {missing} of {len(rows)} rows are in no update, but "
            f"left = {dict(composition.left)} counts {left}: count each once, under its reason"
        )
    if wrong := [reason for reason in composition.left if not NAME.fullmatch(reason)]:
        raise ValueError(
            f"training.compose = {name!r}: left has {wrong}; name reasons by lower-case letters, "
            "digits and _"
        )
    for update in composition.updates:
        if update.loss and (reason := _refused(update, loss)):
            raise ValueError(
                f"training.compose = {name!r}: loss = {update.loss!r} of an update: {reason}"
            )
    return composition


def _refused(update: Update, configured: LossConfig) -> str | None:
    """Returns why a run of these settings cannot learn by the loss that an update names."""
    if reason := registry("losses").error(update.loss):
        return reason
    own = configured.by(update.loss)
    if missing := sorted(set(own.row_columns) - set.intersection(*_columns(update))):
        return (
            f"needs {', '.join(missing)} of every row, which they do not have; choose an advantage "
            "that makes it, or another loss"
        )
    if own.reads_reference and not configured.reads_reference:
        return "needs the starting weights; set loss.kl_coefficient above 0, so that a run has them"
    return None


def _columns(update: Update) -> list[set[str]]:
    return [set(row.columns) for row in update.rows] or [set()]


def stream(seed: int, step: int, policy: int) -> np.random.Generator:
    """Returns the random numbers of one policy, given by its index, in one step: a function of
    these three alone, so that a run resumed before the step draws the same."""
    return np.random.default_rng([seed, _STREAM, step, policy])
