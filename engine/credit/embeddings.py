"""Embeddings of programs: one vector each, whose cosine says how alike two programs are written.

    v = sum of s(f) e_h(f) over the features f of the program, divided by its length

h(f) in 0..WIDTH-1 and the sign s(f) are bits of the CRC-32 of f: feature hashing (Weinberger et al.
2009, arXiv 0902.2206), under which the dot product of two vectors is, without bias, that of the
counts of features. Features of a syntax tree (`engine.credit.syntax`) are each of its nodes, with
its names and constants, and each edge, as the kinds of its ends. So programs that differ only in
names, comments and layout, which are one effective cluster, have the same vector. Features of a
text that does not parse are its words and signs, and each two in a row.

No model, no randomness and no hash of the process: a vector is the same everywhere.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from zlib import crc32

import numpy as np

from engine.config.columns import EMBEDDING_WIDTH as WIDTH
from engine.credit.syntax import canonical_tree

_WORDS = re.compile(r"\w+|[^\w\s]")


def embeddings(programs: Sequence[str]) -> np.ndarray:
    """Returns one vector for each program, float32, (N, WIDTH), of length 1; 0 for an answer
    without a program."""
    known = {program: _embedding(program) for program in dict.fromkeys(programs)}
    if not known:
        return np.zeros((0, WIDTH), dtype=np.float32)
    return np.stack([known[program] for program in programs])


def _embedding(program: str) -> np.ndarray:
    vector = np.zeros(WIDTH)
    for feature, count in Counter(_features(program)).items():
        bits = crc32(feature.encode("utf-8", "surrogatepass"))
        vector[bits % WIDTH] += count if bits >> 31 else -count
    length = np.linalg.norm(vector)
    return (vector / length if length else vector).astype(np.float32)


def _features(program: str) -> Iterator[str]:
    if not program.strip():
        return
    tree = canonical_tree(program)
    if tree is None:
        words = _WORDS.findall(program)
        yield from words
        yield from map(" ".join, pairwise(words))
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.expr_context):  # follows from where a name stands
            continue
        yield _label(node)
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr_context):
                yield f"{type(node).__name__} > {type(child).__name__}"


def _label(node: ast.AST) -> str:
    """Returns the kind of a node and what it holds that is no node: names, constants."""
    own = [value for _, value in ast.iter_fields(node) if not isinstance(value, ast.AST | None)]
    held = [value for value in own if not isinstance(value, list) or _is_names(value)]
    return " ".join([type(node).__name__, *map(_text, held)])


def _is_names(value: list[object]) -> bool:
    """Whether these are the names of `global` or `nonlocal`, and no nodes."""
    return bool(value) and isinstance(value[0], str)


def _text(value: object) -> str:
    """Returns a constant as text; a number may have more digits than Python writes in decimal."""
    if isinstance(value, int) and not isinstance(value, bool):
        return hex(value)
    return repr(value)
