"""Padding and grouping of rows of different lengths."""

from __future__ import annotations

from collections.abc import Sequence

import torch

WASTE = 1.5
PASS_TOKENS = 128
"""Padding tokens that cost no more than another forward pass, whose many small operations have a
fixed launch cost."""


def length_buckets(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Returns row indices grouped so that a group padded to its longest row has at most
    `max_tokens`, unless it is a single row.

    A group also ends where padding would make its shortest row more than `WASTE` times as long,
    plus a margin below which another forward pass would cost more than the padding.
    """
    groups: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lambda r: (-lengths[r], r)):
        group = groups[-1] if groups else []
        longest = lengths[group[0]] if group else 0
        fits = group and longest * (len(group) + 1) <= max_tokens
        if fits and longest <= WASTE * lengths[row] + 16:
            group.append(row)
        else:
            groups.append([row])
    return groups


def prompt_groups(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Returns row indices grouped by `length_buckets`, with a few rows moved to longer ones where
    a separate pass would cost more: few rows of many lengths join a running batch."""
    merged: list[list[int]] = []
    for group in length_buckets(lengths, max_tokens):
        if merged:
            longest, rows = lengths[merged[-1][0]], len(merged[-1]) + len(group)
            padding = len(group) * (longest - lengths[group[0]])
            if padding <= PASS_TOKENS and longest * rows <= max_tokens:
                merged[-1] += group
                continue
        merged.append(group)
    return merged


def left_pad(rows: Sequence[list[int]], pad_id: int, device) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns (ids_NL, mask_NL) with the rows flush right."""
    width = max(map(len, rows))
    ids = [[pad_id] * (width - len(row)) + row for row in rows]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def right_pad(
    rows: Sequence[Sequence[float]], width: int, fill: float, dtype, device
) -> torch.Tensor:
    """Returns values_NL with the rows flush left."""
    return torch.tensor(
        [[*row, *[fill] * (width - len(row))] for row in rows], dtype=dtype, device=device
    )
