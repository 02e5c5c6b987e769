"""Code within prose: where it begins and ends, and what prose is.

A piece of text is parsed, never run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from engine.problems.answers.code import Code, without_remarks
from engine.problems.answers.cut import is_last, start_of_statement
from engine.problems.answers.parser import Parser

_TRIES = 60
"""Attempts to parse pieces of one text."""


def regions(text: str, parser: Parser, *, cut: bool = False) -> Iterator[Code]:
    """Yields the pieces of prose that are code: whole statements with prose, or nothing, around;
    with `cut`, also the end of the text, within a statement."""
    lines = text.split("\n")
    index, before, tries = 0, "", _TRIES
    while index < len(lines) and tries > 0:
        line = lines[index]
        if not line.strip():
            index += 1
            continue
        if _CODE.match(line) and (not before or is_prose(before)):
            code, after, used = _region(lines, index, tries, parser, cut)
            tries -= used
            if code is not None:
                if (kept := without_remarks(code)) is not None:
                    yield kept
                index, before = after, ""
                continue
        before = line
        index += 1


def looks_like_code(text: str) -> bool:
    """Returns whether a line of the text begins as a Python statement that prose never is."""
    return bool(_SURELY_CODE.search(text))


def is_prose(line: str) -> bool:
    """Returns whether a line is a sentence, a heading or an item of a list, not broken code."""
    text = line.strip()
    if _SURELY_CODE.match(text) or _CODE_LIKE.search(text):
        return False
    if _MARKUP.match(text):
        return True
    words = [word for word in _WORD.findall(text) if word not in _KEYWORDS]
    if not words:
        return False
    if not re.search(r"[=(){}\[\];]", text):
        return True
    return len(words) >= 2 and _WORDS_IN_A_ROW.search(text) is not None


_KEYWORDS = frozenset(
    {"def", "class", "return", "import", "lambda", "yield", "raise", "assert", "del", "global",
     "nonlocal", "pass", "elif", "break", "continue", "async", "await", "None", "True", "False"}
)  # fmt: skip
_CODE_LIKE = re.compile(r"^[\w.\[\], ]+[-+*/%]?=[^=]|[;{]$|^(?:[\w.]+\.)?\w+\(.*\)$")
_MARKUP = re.compile(
    r"#{1,6} \S|[-*+•>] |\d+[.)] |[*_]{2}\S|\||[-=*_#~]+$|[-=*~$<>]{3}|[-=]>"
    r"|</?\w[^<>]*>$|\\|[^\x00-\x7f]"
)
"""Headings, items, bold text, tables, rules, arrows, tags, and what is written in no Latin
letters."""
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_WORDS_IN_A_ROW = re.compile(r"\b[^\W\d_](?:['’]?[^\W\d_])+[,:;.]?\s+[(\"'`*]*[^\W\d_]")
_SURELY_CODE = re.compile(
    r"^[ \t]*(?:(?:async[ \t]+)?def[ \t]+\w+[ \t]*\(|class[ \t]+\w+[ \t]*[(:]"
    r"|import[ \t]+[\w.]+[ \t]*(?:as[ \t]+\w+[ \t]*)?(?:[,;#].*)?$"
    r"|from[ \t]+[\w.]+[ \t]+import\b|return\b(?![ \t]+the\b)|@\w+[\w.]*(?:\(|[ \t]*$)"
    r"|(?:if|for|while|elif|with)\b.*:[ \t]*(?:\#.*)?$|(?:else|try|finally)[ \t]*:)",
    re.MULTILINE,
)
_CODE = re.compile(
    _SURELY_CODE.pattern
    + r"|^[ \t]*(?![ \t])(?:[\w.\[\], ]+(?::[^=]+)?[-+*/%|&^]?=[^=]|[a-zA-Z_][\w.]*\("
    r"|\(\w+[ \t]*:=|#|[rbuf]?\"\"\"|[rbuf]?'''|try:|with\b|if\b|for\b|while\b)"
)


def _region(
    lines: Sequence[str], start: int, tries: int, parser: Parser, is_cut: bool
) -> tuple[Code | None, int, int]:
    """Returns the code that begins at a line, the line after it, and how often it was parsed; None
    if it is broken there."""
    first = lines[start]
    lead = first[: len(first) - len(first.lstrip(" \t"))]
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith(lead)):
        end += 1
    is_cut = is_cut and end == len(lines)
    while not lines[end - 1].strip():
        end -= 1
    chunk = [line[len(lead) :] if line.strip() else "" for line in lines[start:end]]
    for used in range(1, tries + 1):
        text = "\n".join(chunk) + "\n"
        if not parser.affords(text):
            return None, start + 1, tries
        error = parser.error_line(text)
        if error is None:
            return parser.code(text), start + len(chunk), used
        cut = start_of_statement(chunk, error)
        ends = is_prose(chunk[cut])
        is_cut = is_cut and not ends and is_last(chunk[cut:])
        if cut <= 0 or not (ends or is_cut):
            return None, start + 1, used
        chunk = chunk[:cut]
        while not chunk[-1].strip():
            chunk.pop()
    return None, start + 1, tries
