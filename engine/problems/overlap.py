"""Decontamination: problems of one data set that are also in another.

Four kinds of overlap, the strictest first:

- `problem`: the same content hash.
- `statement`: the same words, ignoring case, punctuation and whitespace.
- `reference`: the same tokens of code, ignoring comments and whitespace.
- `statement n-grams`, `reference n-grams`: the share of the n-grams of one text that are in one
  text of the other set is at least the threshold. n is 13 words (GPT-3, arXiv 2005.14165, appendix
  C) and 25 tokens of code. A text that is shorter than n is one n-gram.

An n-gram in more than COMMON problems of the other set is boilerplate ("write a program that reads
...") and does not count, unless a text has no other n-grams.

Invariant: every overlapping problem of the first set is reported once, with the problem of the
second set that it overlaps most, by the strictest kind.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.problems.identity import content_hash
from engine.problems.problem import Problem

WORDS, TOKENS = 13, 25
COMMON = 10
THRESHOLD = 0.5
_WORD = re.compile(r"[^\W_]+")
_IGNORED = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Overlap of `first`, an id of the one set, with `second`, an id of the other."""

    first: str
    second: str
    kind: str
    share: float
    """Share of the n-grams of `first`; 1 for equal problems, statements and references."""


def overlaps(
    first: Sequence[Problem], second: Sequence[Problem], threshold: float = THRESHOLD
) -> list[Overlap]:
    """Returns the problems of the first set, in its order, that are also in the second set."""
    tests: list[Callable[[Problem], Overlap | None]] = [
        _same("problem", second, lambda problem: content_hash(problem)),
        _same("statement", second, lambda problem: " ".join(words(problem.statement))),
        _same("reference", second, lambda problem: " ".join(code_tokens(problem.reference))),
        _near("statement n-grams", second, lambda p: words(p.statement), WORDS, threshold),
        _near("reference n-grams", second, lambda p: code_tokens(p.reference), TOKENS, threshold),
    ]
    matches = (next(filter(None, (test(problem) for test in tests)), None) for problem in first)
    return [overlap for overlap in matches if overlap]


def words(text: str) -> list[str]:
    """Returns the words of a text in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def code_tokens(program: str) -> list[str]:
    """Returns the tokens of a program without comments and layout; its words if it cannot be
    tokenized."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(program).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return words(program)
    return [token.string for token in tokens if token.type not in _IGNORED and token.string]


def _same(
    kind: str, second: Sequence[Problem], key: Callable[[Problem], str]
) -> Callable[[Problem], Overlap | None]:
    ids_by_key: dict[str, str] = {}
    for problem in second:
        ids_by_key.setdefault(key(problem), problem.id)
    ids_by_key.pop("", None)

    def test(problem: Problem) -> Overlap | None:
        other = ids_by_key.get(key(problem))
        return None if other is None else Overlap(problem.id, other, kind, 1.0)

    return test


def _near(
    kind: str,
    second: Sequence[Problem],
    parts: Callable[[Problem], list[str]],
    size: int,
    threshold: float,
) -> Callable[[Problem], Overlap | None]:
    positions_by_gram: defaultdict[int, list[int]] = defaultdict(list)
    for position, problem in enumerate(second):
        for gram in _grams(parts(problem), size):
            positions_by_gram[gram].append(position)

    def test(problem: Problem) -> Overlap | None:
        grams = _grams(parts(problem), size)
        distinctive = {
            gram for gram in grams if len(positions_by_gram.get(gram, ())) <= COMMON
        } or grams
        shared = Counter(
            position for gram in distinctive for position in positions_by_gram.get(gram, ())
        )
        if not shared:
            return None
        position, count = min(shared.items(), key=lambda item: (-item[1], item[0]))
        share = count / len(distinctive)
        other = second[position].id
        return Overlap(problem.id, other, kind, share) if share >= threshold else None

    return test


def _grams(parts: list[str], size: int) -> set[int]:
    """Returns hashes of the n-grams, which are stable within one process only and never stored."""
    if not parts:
        return set()
    return {hash(tuple(parts[i : i + size])) for i in range(max(1, len(parts) - size + 1))}
