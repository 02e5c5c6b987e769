"""Rows of different lengths as padded tensors, in float64: the inputs of golden cases of losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def padded(rows: list[list[float]]) -> Tensor:
    """Returns rows of different lengths padded with 0, which no mask covers."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    return pad_sequence([torch.tensor(row, dtype=torch.float64) for row in rows], batch_first=True)


def unpadded(values_NL: Tensor, rows: list[list[float]]) -> list[list[float]]:
    """Returns the values of each row without its padding."""
    return [values[: len(row)].tolist() for values, row in zip(values_NL, rows, strict=True)]


def mask_of(inputs: dict[str, Any]) -> Tensor:
    """Returns the `mask` of a case's inputs, or one that covers every token of its log-probs."""
    rows = inputs.get("log_probs") or inputs["old_log_probs"]
    return padded(inputs.get("mask") or [[1.0] * len(row) for row in rows])
