"""The children that compete for one descent: one Thompson draw each, and the largest wins.

Invariants:
- Up to `MAX_INDIVIDUAL` children, each has its own draw, in the order of creation; one by one or
  in one call of numpy, the generator gives the same numbers.
- Beyond that, children with equal posteriors form a group. The largest of n independent draws of
  one distribution is F^-1(U^(1/n)), and each of the n is equally likely to have it: so a choice has
  the same probabilities, and costs O(groups) instead of O(children). Groups too small for that to
  pay off draw for each child, in one call.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import NamedTuple

import numpy as np

from engine.search.posteriors import (
    DIGITS,
    Family,
    ThompsonPosterior,
    make_posterior,
    posterior_class,
)

MIN_VECTORIZED = 6
"""Number of children from which one call that draws for all is faster than a call for each."""
MAX_INDIVIDUAL = 64
"""Number of children up to which each has its own draw."""
MIN_INVERTED = 24
"""Size of a group from which its largest draw is faster to compute by inversion."""

MAX_RECORDED_DRAWS = 32
"""Number of largest draws in a record, a limit that keeps events small."""


class Children:
    """Posteriors by child id, and the draw among them."""

    __slots__ = ("_draws", "_family", "_posteriors")

    def __init__(self, family: Family):
        self._family = family
        self._posteriors: dict[int, ThompsonPosterior] = {}
        self._draws: _IndividualDraws | _GroupedDraws | None = None

    def __len__(self) -> int:
        return len(self._posteriors)

    def __iter__(self) -> Iterator[int]:
        return iter(self._posteriors)

    def __getitem__(self, child: int) -> ThompsonPosterior:
        return self._posteriors[child]

    def values(self) -> ValuesView[ThompsonPosterior]:
        """Returns the posteriors, in the order in which children were first scored."""
        return self._posteriors.values()

    def items(self) -> ItemsView[int, ThompsonPosterior]:
        """Returns (child id, posterior), in the same order."""
        return self._posteriors.items()

    def observe(self, child: int, score: float) -> None:
        """Records a score of a child or of one of its descendants; a child competes from its first
        score on."""
        posterior = self._posteriors.get(child)
        if posterior is None:
            posterior = self._posteriors[child] = make_posterior(self._family)
            if draws_class := _CLASSES.get(len(self._posteriors)):
                self._draws = draws_class(self._family)
                for other, earlier in self._posteriors.items():
                    self._draws.update(other, earlier.key())
        posterior.observe(score)
        if self._draws:
            self._draws.update(child, posterior.key())

    def choose(self, rng: np.random.Generator) -> tuple[int, dict[int, float]]:
        """Returns the child with the largest draw, and the draws: of all children, or of that one
        alone in a pool of more than `MAX_INDIVIDUAL`."""
        if self._draws is None:
            draws = {child: p.draw(rng) for child, p in self._posteriors.items()}
            return max(draws, key=draws.__getitem__), draws
        return self._draws.choose(rng)

    def recorded(
        self, draws: Mapping[int, float]
    ) -> tuple[dict[str, float], dict[str, Mapping[str, float]]]:
        """Returns the largest of these draws by child id, in descending order, and the posteriors
        behind them, as a record holds both."""
        if len(draws) < MIN_VECTORIZED:
            ranked = sorted(draws, key=draws.__getitem__, reverse=True)
            values = [round(draws[child], DIGITS) for child in ranked]
        else:
            draws_C = np.fromiter(draws.values(), float, len(draws))
            order_R = np.argsort(-draws_C, kind="stable")[:MAX_RECORDED_DRAWS]
            ranked = np.fromiter(draws, int, len(draws))[order_R].tolist()
            values = draws_C[order_R].round(DIGITS).tolist()
        names = [str(child) for child in ranked]
        posteriors = self._posteriors
        parameters = {
            name: posteriors[child].recorded() for name, child in zip(names, ranked, strict=True)
        }
        return dict(zip(names, values, strict=True)), parameters


class _IndividualDraws:
    """One row of parameters for each child, in the order of creation."""

    __slots__ = ("_children", "_draw", "_rows", "_rows_CP")

    def __init__(self, family: Family):
        self._draw = posterior_class(family).draw_each
        self._children: list[int] = []
        self._rows: dict[int, int] = {}
        self._rows_CP = np.empty((0, 0))

    def update(self, child: int, key: tuple[float, ...]) -> None:
        row = self._rows.get(child)
        if row is None:
            row = self._rows[child] = len(self._children)
            self._children.append(child)
            self._rows_CP = _with_capacity(self._rows_CP, row, key)
        self._rows_CP[row] = key

    def choose(self, rng: np.random.Generator) -> tuple[int, dict[int, float]]:
        draws_C = self._draw(self._rows_CP[: len(self._children)].T, rng)
        draws = dict(zip(self._children, draws_C.tolist(), strict=True))
        return self._children[int(draws_C.argmax())], draws


class _GroupsBySize(NamedTuple):
    """Groups by how they are drawn: small ones per child, large ones as a whole."""

    groups_F: np.ndarray
    """The group of each child of a small group."""
    keys_PF: np.ndarray
    large_L: np.ndarray
    keys_PL: np.ndarray


class _GroupedDraws:
    """Children grouped by their parameters; the index of an emptied group is reused."""

    __slots__ = (
        "_by_size", "_counts_G", "_empty", "_groups", "_keys_GP", "_kind", "_members",
        "_positions",
    )  # fmt: skip

    def __init__(self, family: Family):
        self._kind = posterior_class(family)
        self._groups: dict[tuple[float, ...], int] = {}
        self._members: list[list[int]] = []
        self._empty: list[int] = []
        self._positions: dict[int, tuple[int, int]] = {}
        """Group and index in it, by child."""
        self._counts_G = np.empty((0, 1), dtype=np.int64)
        self._keys_GP = np.empty((0, 0))
        self._by_size: _GroupsBySize | None = None
        """Valid until a group that draws per child gets, or loses, a member."""

    def update(self, child: int, key: tuple[float, ...]) -> None:
        if child in self._positions:
            self._remove(child)
        group = self._groups.get(key)
        if group is None:
            group = self._new_group(key)
        members = self._members[group]
        self._positions[child] = group, len(members)
        members.append(child)
        self._counts_G[group] += 1
        if len(members) <= MIN_INVERTED:
            self._by_size = None

    def choose(self, rng: np.random.Generator) -> tuple[int, dict[int, float]]:
        if self._by_size is None:
            self._by_size = self._split_by_size()
        groups_F, keys_PF, large_L, keys_PL = self._by_size
        group, best = -1, -np.inf
        if len(groups_F):
            draws_F = self._kind.draw_each(keys_PF, rng)
            top = int(draws_F.argmax())
            group, best = int(groups_F[top]), float(draws_F[top])
        if len(large_L):
            # 1 - U^(1/n): the share of the distribution above the largest of n draws.
            tails_L = -np.expm1(np.log1p(-rng.random(len(large_L))) / self._counts_G[large_L, 0])
            beyond_L = (tails_L < self._kind.share_above(keys_PL, best)).nonzero()[0]
            if len(beyond_L):
                values_B = self._kind.value_below(keys_PL[:, beyond_L], tails_L[beyond_L])
                top = int(values_B.argmax())
                group, best = int(large_L[beyond_L[top]]), float(values_B[top])
        members = self._members[group]
        child = members[int(rng.random() * len(members))]
        return child, {child: best}

    def _split_by_size(self) -> _GroupsBySize:
        total = len(self._members)
        counts_G, keys_GP = self._counts_G[:total, 0], self._keys_GP[:total]
        large_L = (counts_G >= MIN_INVERTED).nonzero()[0]
        groups_F = np.repeat(np.arange(total), np.where(counts_G >= MIN_INVERTED, 0, counts_G))
        return _GroupsBySize(groups_F, keys_GP[groups_F].T, large_L, keys_GP[large_L].T)

    def _new_group(self, key: tuple[float, ...]) -> int:
        if self._empty:
            group = self._empty.pop()
        else:
            group = len(self._members)
            self._members.append([])
            self._keys_GP = _with_capacity(self._keys_GP, group, key)
            self._counts_G = _with_capacity(self._counts_G, group, (0,))
        self._groups[key] = group
        self._keys_GP[group] = key
        self._counts_G[group] = 0
        return group

    def _remove(self, child: int) -> None:
        group, index = self._positions.pop(child)
        members = self._members[group]
        last = members.pop()
        if last != child:
            members[index] = last
            self._positions[last] = group, index
        self._counts_G[group] -= 1
        if len(members) < MIN_INVERTED:
            self._by_size = None
        if not members:
            del self._groups[tuple(self._keys_GP[group].tolist())]
            self._empty.append(group)


_CLASSES: dict[int, type[_IndividualDraws | _GroupedDraws]] = {
    MIN_VECTORIZED: _IndividualDraws,
    MAX_INDIVIDUAL + 1: _GroupedDraws,
}
"""Class that draws from this number of children on."""


def _with_capacity(rows: np.ndarray, row: int, like: tuple[float, ...]) -> np.ndarray:
    """Returns the rows with capacity for one more, doubled when they are full."""
    if row < len(rows):
        return rows
    larger = np.ones((max(8, 2 * row), len(like)), dtype=rows.dtype)
    if row:
        larger[:row] = rows[:row]
    return larger
