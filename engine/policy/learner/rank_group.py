"""The ranks on which one policy learns: who takes which rows, and what all of them add up.

Invariants:
- Every rank is given the same batch and divides it alike, so each row is learned from once.
- All ranks make the same number of forward passes: a pass gathers the weights from all of them.
- Sums are over all ranks, and so are a loss's denominators: the gradient of a batch does not hang
  on their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from engine.policy.learner.forward import inputs_of
from engine.policy.learner.rows import TrainingRow
from engine.policy.learner.trie import sorted_rows


@dataclass(frozen=True)
class RankGroup:
    """One rank among `ranks`; alone it asks nobody."""

    rank: int = 0
    ranks: int = 1
    device: str = "cpu"
    """Where what is added up must lie."""

    def share(self, rows: Sequence[TrainingRow]) -> Sequence[TrainingRow]:
        """This rank's part of a batch; may be empty."""
        return rows if self.ranks == 1 else divide(rows, self.ranks)[self.rank]

    def sum(self, values: Sequence[float]) -> list[float]:
        """Each value added up over all ranks."""
        return self._reduced(values, dist.ReduceOp.SUM)

    def most(self, counts: Sequence[int]) -> list[int]:
        """The largest of each count over all ranks."""
        return [int(count) for count in self._reduced(counts, dist.ReduceOp.MAX)]

    def _reduced(self, values: Sequence[float], operation: dist.ReduceOp.RedOpType) -> list[float]:
        if self.ranks == 1 or not values:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor, operation)
        return tensor.tolist()


def divide(rows: Sequence[TrainingRow], parts: int) -> list[list[TrainingRow]]:
    """The rows in `parts` of about equally many tokens; what begins alike stays together, so that
    a prefix is shared on as few ranks as can be."""
    inputs = [inputs_of(row) for row in rows]
    order, _ = sorted_rows(inputs)
    total = sum(map(len, inputs))
    divided: list[list[TrainingRow]] = [[] for _ in range(parts)]
    before = 0
    for row in order:
        middle = before + len(inputs[row]) / 2
        divided[min(parts - 1, int(parts * middle / total))].append(rows[row])
        before += len(inputs[row])
    return divided
