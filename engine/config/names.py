"""What the names of things may hold: those of runs and projects, of data sets, models and agents,
and the ids of problems: typed, uploaded or sent.

Invariant: an accepted name shows at least one character, on one line, in the direction of its text.
"""

from __future__ import annotations

import re

_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
"""Control characters and separators of lines, which steer terminals and break tables."""
_DIRECTION = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Marks and overrides of the direction of writing (UAX 9), which reorder what follows."""
_INVISIBLE = (
    r"\xad\u180e\u200b-\u200d\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
"""Characters of no width: two names that differ by one look the same."""
_BLANK = (
    r" \xa0\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180d\u180f\u2000-\u200a\u202f\u205f"
    "\\u2800\\u3000\\u3164\\ufe00-\\ufe0f\\uffa0\U000e0100-\U000e01ef"
)
"""What shows nothing by itself, and is accepted among other characters."""
_HIDDEN = f"{_CONTROL}{_DIRECTION}{_INVISIBLE}"
PATTERN = f"^[^{_HIDDEN}]*[^{_HIDDEN}{_BLANK}][^{_HIDDEN}]*$"
"""Regular expression of all accepted names, as of JSON Schema."""
PATTERN_OR_EMPTY = f"^$|{PATTERN}"

_IS_HIDDEN = re.compile(f"[{_HIDDEN}\ud800-\udfff]")
_IS_SHOWN = re.compile(f"[^{_HIDDEN}{_BLANK}\ud800-\udfff]")
_STEERS = re.compile(f"[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u2028\\u2029{_DIRECTION}]")
BLANK_ALONE = "shows nothing; give a name with at least one visible character"


def name_fault(name: str) -> str:
    """Returns why a name is refused, with the remedy; empty if it is accepted."""
    if hidden := _IS_HIDDEN.search(name):
        return (
            f"its character {hidden.start() + 1}, U+{ord(hidden[0]):04X}, is not visible; leave "
            "out control characters, marks of direction and characters without width"
        )
    return "" if _IS_SHOWN.search(name) else BLANK_ALONE


def shown_name(name: str) -> str:
    """Returns a name that was stored before such names were refused, with escapes for what is not
    visible in it."""
    if name and not _IS_SHOWN.search(name):
        return "".join(_escaped(one) for one in name)
    return _IS_HIDDEN.sub(lambda hidden: _escaped(hidden[0]), name)


def shown_text(text: str) -> str:
    """Returns a text of other people with escapes for what steers a terminal or turns the direction
    of a line; line ends and tabs stay."""
    return text if text.isascii() and text.isprintable() else _STEERS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return _escaped(found[0])


def _escaped(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
