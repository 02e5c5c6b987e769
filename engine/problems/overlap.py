"""Decontamination: which problems of one data set are also in another.

Four kinds of overlap, the strictest first:

- `problem`: the same content hash.
- `statement`: the same words, whatever the case, punctuation and space.
- `reference`: the same tokens of code, whatever the comments and space.
- `statement n-grams`, `reference n-grams`: the share of the n-grams of one text that are in one
  text of the other set is at least the threshold. n is 13 words (GPT-3, arXiv 2005.14165, appendix
  C) and 25 tokens of code. A text that is shorter than n is one n-gram.

An n-gram that is in more than COMMON problems of the other set is boilerplate ("write a program
that reads ...") and does not count, unless it is all that a text has.

Invariant: every problem of the first set that overlaps is named once, with the problem of the
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
    """`first`, of the one set, is too near to `second`, of the other."""

    first: str
    second: str
    kind: str
    share: float
    """Of the n-grams of `first`; 1 for what is the same."""


def overlaps(
    first: Sequence[Problem], second: Sequence[Problem], threshold: float = THRESHOLD
) -> list[Overlap]:
    """Problems of the first set, in its order, that are in the second set, too."""
    tests: list[Callable[[Problem], Overlap | None]] = [
        _same("problem", second, lambda problem: content_hash(problem)),
        _same("statement", second, lambda problem: " ".join(words(problem.statement))),
        _same("reference", second, lambda problem: " ".join(code_tokens(problem.reference))),
        _near("statement n-grams", second, lambda p: words(p.statement), WORDS, threshold),
        _near("reference n-grams", second, lambda p: code_tokens(p.reference), TOKENS, threshold),
    ]
    found = (next(filter(None, (test(problem) for test in tests)), None) for problem in first)
    return [overlap for overlap in found if overlap]


def words(text: str) -> list[str]:
    """Words of a text in lower case; punctuation is none."""
    return _WORD.findall(text.lower())


def code_tokens(program: str) -> list[str]:
    """Tokens of a program without comments and layout; its words where it cannot be parsed."""
    try:
        found = list(tokenize.generate_tokens(io.StringIO(program).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return words(program)
    return [token.string for token in found if token.type not in _IGNORED and token.string]


def _same(
    kind: str, second: Sequence[Problem], key: Callable[[Problem], str]
) -> Callable[[Problem], Overlap | None]:
    known: dict[str, str] = {}
    for problem in second:
        known.setdefault(key(problem), problem.id)
    known.pop("", None)

    def test(problem: Problem) -> Overlap | None:
        other = known.get(key(problem))
        return None if other is None else Overlap(problem.id, other, kind, 1.0)

    return test


def _near(
    kind: str,
    second: Sequence[Problem],
    parts: Callable[[Problem], list[str]],
    size: int,
    threshold: float,
) -> Callable[[Problem], Overlap | None]:
    holders: defaultdict[int, list[int]] = defaultdict(list)
    for position, problem in enumerate(second):
        for gram in _grams(parts(problem), size):
            holders[gram].append(position)

    def test(problem: Problem) -> Overlap | None:
        grams = _grams(parts(problem), size)
        telling = {gram for gram in grams if len(holders.get(gram, ())) <= COMMON} or grams
        shared = Counter(position for gram in telling for position in holders.get(gram, ()))
        if not shared:
            return None
        position, count = min(shared.items(), key=lambda item: (-item[1], item[0]))
        share = count / len(telling)
        other = second[position].id
        return Overlap(problem.id, other, kind, share) if share >= threshold else None

    return test


def _grams(parts: list[str], size: int) -> set[int]:
    """Hashes of the n-grams; equal ones within one process only, so they are never stored."""
    if not parts:
        return set()
    return {hash(tuple(parts[i : i + size])) for i in range(max(1, len(parts) - size + 1))}
