"""Extraction of the program from a model's answer.

Invariant: the verifier, the feedback of a refinement and answer selection all use the same program,
because all of them call `extract_program`; text is parsed here, never run.
"""

from __future__ import annotations

import ast
import re
import warnings

MAX_CHARS = 200_000  # larger than any real program; bounds the parser's work
_SOURCE = "<answer>"
_FENCE = re.compile(r" {0,3}(`{3,})[ \t]*([^`]*)$")

# Warnings about invalid escapes in a model's program do not belong in our log.
warnings.filterwarnings("ignore", module=re.escape(_SOURCE))


def extract_program(answer: str) -> str:
    """Returns the last fenced block that parses as Python; the whole answer if nothing is fenced.

    A fence that is still open at the end of the answer counts as closed there. Returns an empty
    string if nothing parses, or if the answer is longer than MAX_CHARS.
    """
    if len(answer) > MAX_CHARS:
        return ""
    blocks = fenced_blocks(answer)
    candidates = [answer] if blocks is None else reversed(blocks)
    return next((text for text in candidates if text.strip() and parses(text)), "")


def fenced_blocks(answer: str) -> list[str] | None:
    """Returns the contents of the fenced blocks in order; None if there is no fence."""
    blocks: list[list[str]] = []
    fence = ""
    for line in answer.splitlines(keepends=True):
        match = _FENCE.match(line.rstrip())
        if fence and match and len(match[1]) >= len(fence) and not match[2]:
            fence = ""
        elif fence:
            blocks[-1].append(line)
        elif match:
            fence = match[1]
            blocks.append([])
    return ["".join(block) for block in blocks] if blocks else None


def parses(text: str) -> bool:
    """Returns whether the text parses as a Python module within the parser's limits."""
    try:
        ast.parse(text, filename=_SOURCE)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True
