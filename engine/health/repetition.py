"""Repetition at the end of an answer."""

from __future__ import annotations

from collections.abc import Sequence


def repeated_tokens(tokens: Sequence[int]) -> int:
    """Returns the length of the longest run of whole repeats, two or more and of any period, at the
    end; 0 without one; O(n)."""
    backwards = tokens[::-1]
    runs = [
        (match // period + 1) * period
        for period, match in enumerate(_common_prefixes(backwards)[1:], start=1)
        if match >= period
    ]
    return max(runs, default=0)


def _common_prefixes(items: Sequence[int]) -> list[int]:
    """Returns for each position the length of the common prefix of the rest from there and the
    whole (the Z function: Gusfield, Algorithms on Strings, Trees and Sequences, 1.3)."""
    count = len(items)
    lengths = [count] + [0] * (count - 1)
    left = right = 0
    for start in range(1, count):
        length = min(lengths[start - left], right - start) if start < right else 0
        while start + length < count and items[length] == items[start + length]:
            length += 1
        lengths[start] = length
        if start + length > right:
            left, right = start, start + length
    return lengths
