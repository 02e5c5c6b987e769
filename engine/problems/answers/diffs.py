"""Diffs within an answer: unified ones, those of git, and patches of coding agents.

A diff is never the program where another piece of the answer is: it shows what was, or may be,
changed in that. Only an answer that holds nothing else is read as the file that its diff leaves.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

_HUNK = re.compile(r"[-+ ]|@@|\\ No newline|diff --git |index [\da-f]+\.\.|\*{3} |\n|$")
_PATCH = r"\*{3} (?:(?:Begin|End) Patch|(?:Update|Add|Delete) File: |End of File)"
_HEAD = re.compile(
    rf"@@(?: |$)|\\ No newline|diff --git |index [\da-f]+\.\.|---(?: |$)|\+\+\+(?: |$)|{_PATCH}"
)
_BEGINS = re.compile(
    rf"^(?:diff --git |@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|--- \S[^\n]*\n\+\+\+ \S|{_PATCH})",
    re.MULTILINE,
)
"""How a diff begins that has a head."""
_MARKED = re.compile(r"^[ \t]*[-+@d*]", re.MULTILINE)
_STAYS = re.compile(r"^ \S", re.MULTILINE)
"""A line that stays as it is, at the top level of a file."""
_ANY_LINE = re.compile(rf"[-+ ]|$|{_HEAD.pattern}")


def is_diff(text: str) -> bool:
    """Returns whether a block is a diff: it has the head of one, or each of its lines was added or
    removed, or is indented by the blank of a line that stays."""
    if not _MARKED.search(text):
        return False
    plain = textwrap.dedent(text).strip("\n")
    if _BEGINS.match(plain):
        return True
    return _is_headless([line for line in plain.split("\n") if line.strip()])


def _is_headless(lines: Sequence[str]) -> bool:
    firsts = {line[0] for line in lines}
    return " " in firsts and len(firsts) > 1 and firsts <= {"+", "-", " "}


def without_diffs(text: str) -> str:
    """Returns a text with blank lines for its diffs: those with a head, and paragraphs of changed
    lines among some that one blank is before."""
    if not (_BEGINS.search(text) or _STAYS.search(text)):
        return text
    lines = text.split("\n")
    for index, end in _spans(lines):
        lines[index:end] = [""] * (end - index)
    return "\n".join(lines)


def applied(text: str) -> str:
    """Returns the text with a block for each diff, as the file is once it is applied; empty if it
    has none."""
    if not re.search(r"^\+", text, re.MULTILINE):
        return ""
    pieces: list[str] = []
    run: list[str] = []
    for line in [*text.split("\n"), "end"]:
        if _HUNK.match(line):
            run.append(line)
            continue
        pieces += _applied(run)
        run = []
        pieces.append(line)
    return "\n".join(pieces[:-1])


def _applied(lines: Sequence[str]) -> list[str]:
    """Returns the lines of a diff as a block, those before its head, or that are none, as they
    are."""
    if not any(line.startswith("+") for line in lines):
        return list(lines)
    head = next((n for n, line in enumerate(lines) if _is_head(lines, n)), 0)
    kept = [line[1:] for line in lines[head:] if not line.startswith("-") and not _HEAD.match(line)]
    return [*lines[:head], "```", *kept, "```"]


def _spans(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yields (first line, line after the last) of each diff."""
    index = 0
    while index < len(lines):
        end = index + 1
        if _is_head(lines, index):
            while end < len(lines) and _ANY_LINE.match(lines[end]):
                end += 1
            yield index, end
        elif lines[index].strip():
            while end < len(lines) and lines[end].strip() and not _is_head(lines, end):
                end += 1
            paragraph = lines[index:end]
            if _is_headless(paragraph) and any(map(_STAYS.match, paragraph)):
                yield index, end
        index = end


def _is_head(lines: Sequence[str], index: int) -> bool:
    return bool(_BEGINS.match("\n".join(lines[index : index + 2])))
