"""Types of a composer, and what every composition has to satisfy.

Invariant: a row of the batch is learned from, or it leaves with a named reason that is counted
(`checked`). The counts are in the event of the step's end, and charted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from engine.config.columns import ROW_COLUMNS, names_of
from engine.config.loss import LossConfig
from engine.config.method_needs import DEMONSTRATIONS
from engine.config.methods import NAME, registry
from engine.config.schema import RunConfig
from engine.memory.protocol import Memory, SeenTree
from engine.policy.learner.objective import Objective, OptimizerGroup
from engine.policy.learner.rows import TrainingRow

_STREAM = 21
"""Number of the composers' random streams among those of a run's seed."""


class RowKind(StrEnum):
    """Where the rows of an update come from."""

    ROLLOUT = "rollout"
    """The batch of this step."""
    DEMONSTRATION = "demonstration"
    """Answers that the policy did not sample: of any update, those that say so themselves."""
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
    optimizer: OptimizerGroup | None = None
    """An optimizer of its own; None is the agent's."""

    @property
    def objective(self) -> Objective:
        """What the learner minimises."""
        return Objective(self.loss, self.optimizer)

    @property
    def sampled_trees(self) -> list[int]:
        """Ids of the trees whose nodes it learns from, sorted."""
        return sorted({row.tree for row in self.rows if not row.is_demonstration})


@dataclass(frozen=True)
class Composition:
    """What a composer makes of a batch."""

    updates: Sequence[Update]
    """They run in order."""
    left: Mapping[str, int] = field(default_factory=dict)
    """Number of the batch's rows that leave, by reason: a name of lower-case letters and _."""
    unshown: Mapping[str, int] = field(default_factory=dict)
    """Number of demonstrations that there are none of, by reason."""

    def rows(self) -> dict[str, int]:
        """Returns how many rows are learned from, repeated ones included, by kind."""
        shown = RowKind.DEMONSTRATION
        return Counter(
            str(shown if row.is_demonstration else update.kind)
            for update in self.updates
            for row in update.rows
        )


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
    demonstrate: Demonstrate | None = None
    """Makes demonstrations."""
    options: Any = None
    """The composer's own `Options`; None if it has none."""


class Demonstrate(Protocol):
    """Part of `engine.training.demonstrations.Demonstrations`."""

    def __call__(self, owner: str, trees: Mapping[int, int]) -> Shown:
        """Returns demonstrations to the owner of the weights, one for each tree that has one.
        `trees` are the numbers of problems by tree."""
        ...


@dataclass(frozen=True)
class Shown:
    """Demonstrations of some trees, with advantage 0."""

    rows: Mapping[int, TrainingRow]
    """By tree, in the order of the request."""
    missing: Mapping[str, int]
    """Number of trees without one, by reason."""


Compose = Callable[[Sequence[TrainingRow], ComposeContext], Composition]
"""(rows, context) -> composition. `rows` are the batch that the policy's buffer gave, or none while
it holds none."""


@dataclass(frozen=True)
class Composer:
    """A method of `engine.training.compose.methods`."""

    compose: Compose
    memory: Callable[[RunConfig], Memory] | None = None
    """Returns an empty memory."""
    needs: frozenset[str] = frozenset()
    """Columns of the batch's rows that it reads (`engine.config.columns.ROW_COLUMNS`)."""


def composer_of(module: Any) -> Composer:
    """Returns the composer that a module holds: `compose` and, if it has them, `memory`, `NEEDS`,
    `MAKES` and `ADVANTAGES` (`engine.config.method_needs`).

    Raises:
        ValueError: it holds none, or needs a column that does not exist.
    """
    if not callable(compose := getattr(module, "compose", None)):
        raise ValueError("has no function compose(rows, context)")
    needs = names_of(module, "NEEDS")
    names_of(module, "MAKES"), names_of(module, "ADVANTAGES")
    if unknown := sorted(needs - ROW_COLUMNS):
        raise ValueError(
            f"NEEDS has {', '.join(unknown)}; choose among {', '.join(sorted(ROW_COLUMNS))}"
        )
    return Composer(compose, getattr(module, "memory", None), needs)


def checked(
    name: str, rows: Sequence[TrainingRow], composition: Composition, loss: LossConfig
) -> Composition:
    """Returns the composition that the composer of this name made of a batch; `loss` is the run's.

    Raises:
        ValueError: a row is neither learned from nor counted, a reason is no name, an optimizer has
            no name, or a loss is unknown, needs what this run does not have, or does not know
            demonstrations.
    """
    learned = {(row.tree, row.node) for update in composition.updates for row in update.rows}
    missing = sum(1 for row in rows if (row.tree, row.node) not in learned)
    left = sum(composition.left.values())
    if missing != left:
        raise ValueError(
            f"training.compose = {name!r}: {missing} of {len(rows)} rows are in no update, but "
            f"left = {dict(composition.left)} counts {left}: count each once, under its reason"
        )
    reasons = (*composition.left, *composition.unshown)
    if wrong := [reason for reason in reasons if not NAME.fullmatch(reason)]:
        raise ValueError(
            f"training.compose = {name!r}: left has {wrong}; name reasons by lower-case letters, "
            "digits and _"
        )
    for update in composition.updates:
        if reason := _refused(update, loss):
            policy = update.loss or loss.policy
            raise ValueError(
                f"training.compose = {name!r}: loss = {policy!r} of an update: {reason}"
            )
        if update.optimizer and not NAME.fullmatch(update.optimizer.name):
            raise ValueError(
                f"training.compose = {name!r}: optimizer = {update.optimizer.name!r} of an update; "
                "name it by lower-case letters, digits and _"
            )
    return composition


def _refused(update: Update, configured: LossConfig) -> str | None:
    """Returns why a run of these settings cannot learn from an update by its loss."""
    if update.loss and (reason := registry("losses").error(update.loss)):
        return reason
    own = configured.by(update.loss) if update.loss else configured
    if any(row.is_demonstration for row in update.rows) and DEMONSTRATIONS not in own.needs:
        return "takes demonstrations for the policy's own answers; choose a loss that knows them"
    if not update.loss:
        return None
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
