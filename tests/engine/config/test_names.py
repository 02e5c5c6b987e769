"""Tests of what a name may hold, and of how an older one is shown."""

import re

import pytest

from engine.config.names import PATTERN, PATTERN_OR_EMPTY, name_fault, shown_name

HIDDEN = {
    "an escape": ("pond\x1b[32m", "U+001B", "pond\\x1b[32m"),
    "a line end": ("pond\nheron", "U+000A", "pond\\x0aheron"),
    "a tab": ("a\tb", "U+0009", "a\\x09b"),
    "a C1 control": ("a\x9bb", "U+009B", "a\\x9bb"),
    "a separator of lines": ("a\u2028b", "U+2028", "a\\u2028b"),
    "an override": ("run\u202egnp", "U+202E", "run\\u202egnp"),
    "an isolate": ("\u2067a", "U+2067", "\\u2067a"),
    "a mark of direction": ("a\u200f", "U+200F", "a\\u200f"),
    "a zero-width blank": ("a\u200bb", "U+200B", "a\\u200bb"),
    "a zero-width joiner": ("a\u200db", "U+200D", "a\\u200db"),
    "a byte order mark": ("\ufeffa", "U+FEFF", "\\ufeffa"),
    "a soft hyphen": ("a\xadb", "U+00AD", "a\\xadb"),
    "a tag": ("a\U000e0041", "U+E0041", "a\\U000e0041"),
    "half a surrogate pair": ("a\ud800", "U+D800", "a\\ud800"),
}
BLANK = {
    " ": "\\x20", "\xa0\u3000": "\\xa0\\u3000", "\u2003": "\\u2003", "\u3164": "\\u3164",
    "\u2800": "\\u2800", "\ufe0f": "\\ufe0f",
}  # fmt: skip
PLAIN = (
    "a", "Wider trees, again", "Ärger", "名前 二", "שלום", "مرحبا ٣", "❤️ 2", "a\xa0b", "x/y_z-1",
)  # fmt: skip


@pytest.mark.parametrize("kind", HIDDEN)
def test_a_name_with_what_is_not_visible_is_refused_by_its_code(kind):
    name, code, shown = HIDDEN[kind]
    position = next(i for i, one in enumerate(name, 1) if f"U+{ord(one):04X}" == code)
    assert f"its character {position}, {code}, is not visible; leave out" in name_fault(name)
    assert shown_name(name) == shown


@pytest.mark.parametrize("name", BLANK)
def test_a_name_of_blanks_alone_is_refused(name):
    assert "at least one visible character" in name_fault(name)
    assert shown_name(name) == BLANK[name]


@pytest.mark.parametrize("name", PLAIN)
def test_any_other_name_is_accepted_and_shown_as_it_is(name):
    assert name_fault(name) == "" and shown_name(name) == name


def test_the_pattern_of_the_documentation_is_the_same_rule():
    refused = [name for name, *_ in HIDDEN.values() if "\ud800" not in name] + list(BLANK)
    for name in (*refused, *PLAIN, ""):
        assert bool(re.search(PATTERN, name)) == (not name_fault(name)), ascii(name)
        assert bool(re.search(PATTERN_OR_EMPTY, name)) == (not name or not name_fault(name))
