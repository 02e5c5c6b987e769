"""Figures of a minibatch's rows, for policy losses that compare rows with one another.

A term of a group is no sum over rows, and the rows of a group need not meet in one forward pass. If
it depends on the model through one number of each row, it is still minimised row by row: its
derivative by that number is a column of the rows. A loss computes such columns with
`over_minibatch(rows, config)`, once for each minibatch, before its first backward pass; they are in
`LossContext.columns`. A learner then cuts minibatches between trees, never through one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.config.loss import LossConfig
from engine.losses import POLICY_LOSSES

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class MinibatchRows:
    """The N rows of one minibatch, of all ranks, in float64 and without gradient."""

    drift_N: Tensor
    """Sums of log pi_theta - log pi_old over the tokens of each row."""
    lengths_N: Tensor
    """Output tokens."""
    groups_N: Tensor
    """Numbers of the rows' groups, which are trees."""
    columns: Mapping[str, Tensor]
    """Those that the loss names in `NEEDS`, (N,) each."""


OverMinibatch = Callable[[MinibatchRows, LossConfig], Mapping[str, "Tensor"]]
"""(rows, config) -> further columns of the rows, (N,) each, by name."""


def over_minibatch(config: LossConfig) -> OverMinibatch | None:
    """Returns the hook of the configured loss over a minibatch; None if it compares no rows."""
    return getattr(POLICY_LOSSES[config.policy], "over_minibatch", None)
