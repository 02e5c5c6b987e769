"""Order of a file's problems, which defines its training, validation and test splits.

Invariant: a problem's position in the order follows from a hash of its content and the seed. The
same problems are in the same splits whatever the order, ids or container of their file; and a
problem that is added or removed moves at most one other across each boundary between splits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from engine.problems.identity import content_hash
from engine.problems.problem import Problem


def shuffled(problems: Iterable[Problem], seed: int) -> list[Problem]:
    """Returns the problems in the order of SHA-256("seed:content hash")."""
    return sorted(problems, key=lambda problem: sort_key(content_hash(problem), seed))


def sort_key(content: str, seed: int) -> bytes:
    """Returns the sort key of a problem with this content hash; validation takes the first problems
    in this order, then test."""
    return hashlib.sha256(f"{seed}:{content}".encode()).digest()
