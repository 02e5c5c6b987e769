"""Layout of rows of tokens without padding, in which common prefixes occur once.

The rows form a trie (a prefix tree) of segments. A token attends to its own segment up to itself
and to the whole of the segments above, which are the row up to that token; its position is the
number of tokens above it. So every row is computed independently of the others.

Invariant: the layout depends only on the rows, in their order: no clock, no random number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

MIN_SAVED = 16
"""Least tokens that a shared segment must save: each costs a call of attention, and shorter
segments use it less efficiently."""


@dataclass(frozen=True)
class Segment:
    """Tokens `start` to `start + length` of the layout."""

    start: int
    length: int
    above_P: np.ndarray
    """Layout indices of all tokens before it, first token of the row first."""


@dataclass
class Trie:
    """(T,) tokens of the layout; each row's tokens are at the indices of its path."""

    segments: list[Segment] = field(default_factory=list)
    tokens: int = 0
    paths: list[np.ndarray] = field(default_factory=list)
    """By row: the layout index of each of its tokens."""

    def ids(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        """Returns ids_T of the rows from which the trie was built."""
        ids_T = np.zeros(self.tokens, dtype=np.int64)
        for row, path in zip(rows, self.paths, strict=True):
            ids_T[path] = row
        return ids_T

    def positions(self) -> np.ndarray:
        """Returns positions_T: the number of tokens above each token."""
        positions_T = np.zeros(self.tokens, dtype=np.int64)
        for path in self.paths:
            positions_T[path] = np.arange(len(path))
        return positions_T

    def _add(self, above_P: np.ndarray, length: int) -> np.ndarray:
        """Adds a segment; returns the path to its end."""
        if not length:
            return above_P
        self.segments.append(Segment(self.tokens, length, above_P))
        own = np.arange(self.tokens, self.tokens + length)
        self.tokens += length
        return np.concatenate([above_P, own])


def pack(rows: Sequence[Sequence[int]]) -> Trie:
    """Returns a trie with one segment per row, in order: nothing is shared."""
    trie = Trie()
    nothing = np.zeros(0, dtype=np.int64)
    trie.paths = [trie._add(nothing, len(row)) for row in rows]
    return trie


def share_prefixes(rows: Sequence[Sequence[int]]) -> Trie:
    """Returns the trie of the rows, cut only where that saves `MIN_SAVED` tokens or more."""
    order, common = sorted_rows(rows)
    trie = Trie()
    paths: list[np.ndarray | None] = [None] * len(rows)
    # Rows order[first:last] share their first len(above_P) tokens, which are laid out.
    pending = [(0, len(rows), np.zeros(0, dtype=np.int64))] if len(rows) else []
    while pending:
        first, last, above_P = pending.pop()
        if last - first == 1:
            row = order[first]
            paths[row] = trie._add(above_P, len(rows[row]) - len(above_P))
            continue
        alike = int(common[first + 1 : last].min())
        if (alike - len(above_P)) * (last - first - 1) >= MIN_SAVED:
            above_P = trie._add(above_P, alike - len(above_P))
        cuts = [first, *(first + 1 + np.flatnonzero(common[first + 1 : last] == alike)), last]
        # Last in, first out: the parts are processed in order.
        parts = list(pairwise(cuts))
        pending += [(int(a), int(b), above_P) for a, b in reversed(parts)]
    trie.paths = [path for path in paths if path is not None]
    return trie


def sorted_rows(rows: Sequence[Sequence[int]]) -> tuple[list[int], np.ndarray]:
    """Returns (row indices in lexicographic order, by position in it: the length of the prefix
    shared with the row before)."""
    arrays = [np.asarray(row, dtype=">u4") for row in rows]
    keys = [array.tobytes() for array in arrays]  # big-endian: bytes compare as the numbers do
    order = sorted(range(len(rows)), key=lambda row: (keys[row], row))
    common = np.zeros(len(rows), dtype=np.int64)
    for index in range(1, len(order)):
        common[index] = _common(arrays[order[index - 1]], arrays[order[index]])
    return order, common


def _common(one: np.ndarray, other: np.ndarray) -> int:
    shorter = min(len(one), len(other))
    differ = one[:shorter] != other[:shorter]
    return int(differ.argmax()) if differ.any() else shorter
