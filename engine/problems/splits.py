"""Which problems are for training, validation and test.

Invariant: a problem's place in the order is a hash of its content and the seed. The same problems
fall into the same splits whatever the order, ids or container of their file; and a problem that is
added or removed moves at most one other across each border between splits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from engine.problems.identity import content_hash
from engine.problems.problem import Problem


def shuffled(problems: Iterable[Problem], seed: int) -> list[Problem]:
    """The problems in the order of SHA-256("seed:content hash")."""
    return sorted(problems, key=lambda problem: place(content_hash(problem), seed))


def place(content: str, seed: int) -> bytes:
    """By what a problem of this content hash is sorted; validation takes the first, then test."""
    return hashlib.sha256(f"{seed}:{content}".encode()).digest()
