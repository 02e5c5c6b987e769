"""Division of a batch into minibatches, with one optimizer step each, and what a loss computes over
one of them.

Invariant: every rank computes columns from the figures of all rows, so they do not depend on how
the rows are divided into ranks and forward passes, except for the order of sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from engine.config.loss import LossConfig
from engine.losses.minibatch import MinibatchRows, OverMinibatch
from engine.policy.learner.rank_group import RankGroup
from engine.policy.learner.rows import TrainingRow


def split(
    rows: Sequence[TrainingRow], parts: int, *, whole_trees: bool = False
) -> list[Sequence[TrainingRow]]:
    """Returns the batch in `parts` interleaved parts of similar size, or fewer, none empty; with
    `whole_trees` the rows of a tree are in the same part."""
    if not whole_trees:
        return [rows[start::parts] for start in range(min(parts, len(rows)))]
    by_tree: dict[int, list[TrainingRow]] = {}
    for row in rows:
        by_tree.setdefault(row.tree, []).append(row)
    trees = list(by_tree.values())
    return [
        [row for tree in trees[start::parts] for row in tree]
        for start in range(min(parts, len(trees)))
    ]


def compared_columns(
    hook: OverMinibatch,
    rows: Sequence[TrainingRow],
    drifts: Sequence[float],
    loss: LossConfig,
    rank_group: RankGroup,
) -> dict[str, Tensor]:
    """Returns the columns that the loss computes over a minibatch, by name, of this rank's rows in
    order. `drifts` are sums of log pi_theta - log pi_old over each row's tokens."""
    names = loss.row_columns
    mine = [
        [drift, len(row.output_ids), row.tree, *(row.columns[name] for name in names)]
        for row, drift in zip(rows, drifts, strict=True)
    ]
    whole, first = rank_group.gather(mine, 3 + len(names))
    drift_N, lengths_N, groups_N, *own = torch.tensor(whole, dtype=torch.float64).T
    figures = MinibatchRows(drift_N, lengths_N, groups_N.long(), dict(zip(names, own, strict=True)))
    return {
        name: values_N[first : first + len(mine)] for name, values_N in hook(figures, loss).items()
    }


def taken(
    columns: Mapping[str, Tensor], count: int, mask_NL: Tensor
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Returns the first `count` values of each column, padded to the rows of a mask and on its
    device, and the columns of what is left."""
    padding = (0, len(mask_NL) - count)
    first = {
        name: torch.nn.functional.pad(values_N[:count], padding).to(mask_NL.device)
        for name, values_N in columns.items()
    }
    return first, {name: values_N[count:] for name, values_N in columns.items()}
