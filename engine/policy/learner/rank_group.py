"""The ranks on which one policy learns: the division of rows, and sums over all ranks.

Invariants:
- Every rank receives the same batch and divides it in the same way, so each row is used once.
- All ranks make the same number of forward passes: a pass gathers the weights from all of them.
- Sums are over all ranks, and so are a loss's denominators: the gradient of a batch does not
  depend on their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.nn import Parameter

from engine.policy.learner.forward import inputs_of
from engine.policy.learner.rows import TrainingRow
from engine.policy.learner.trie import sorted_rows


@dataclass(frozen=True)
class RankGroup:
    """One rank among `ranks`; a single one does not communicate."""

    rank: int = 0
    ranks: int = 1
    device: str = "cpu"
    """Device of tensors that are reduced."""

    def share(self, rows: Sequence[TrainingRow]) -> Sequence[TrainingRow]:
        """Returns this rank's part of a batch; may be empty."""
        return rows if self.ranks == 1 else divide(rows, self.ranks)[self.rank]

    def sum(self, values: Sequence[float]) -> list[float]:
        """Returns the sum of each value over all ranks."""
        return self._reduced(values, dist.ReduceOp.SUM)

    def most(self, counts: Sequence[int]) -> list[int]:
        """Returns the maximum of each count over all ranks."""
        return [int(count) for count in self._reduced(counts, dist.ReduceOp.MAX)]

    def gather(self, mine: Sequence[Sequence[float]], width: int) -> tuple[list[list[float]], int]:
        """Returns the rows of `width` numbers of all ranks, in order, and the index of this rank's
        first one."""
        counts = self.sum([len(mine) * (rank == self.rank) for rank in range(self.ranks)])
        first = int(sum(counts[: self.rank]))
        flat = [0.0] * (width * int(sum(counts)))
        flat[width * first : width * (first + len(mine))] = [x for row in mine for x in row]
        flat = self.sum(flat)
        return [flat[at : at + width] for at in range(0, len(flat), width)], first

    def sum_gradients(self, parameters: Sequence[Parameter]) -> None:
        """Replaces the gradients of parameters that are whole on every rank by their sums."""
        if self.ranks == 1:
            return
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)

    def _reduced(self, values: Sequence[float], operation: dist.ReduceOp.RedOpType) -> list[float]:
        if self.ranks == 1 or not values:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor, operation)
        return tensor.tolist()


def divide(rows: Sequence[TrainingRow], parts: int) -> list[list[TrainingRow]]:
    """Returns the rows in `parts` of about equally many tokens; rows with a common prefix stay
    together, so that a prefix is on as few ranks as possible."""
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
