"""Programs within other texts of an answer: strings of YAML, TOML and Python, JSON between prose,
notebooks as text, sessions of a shell.

Each reading is a pure function from a text to another, empty if the text has nothing of its kind,
and takes time linear in the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

_MOST_VALUES = 12
"""JSON values within prose that are tried."""


def fenced(piece: str) -> str:
    """Returns a text as a block, whatever fences of three ticks it holds."""
    return f"\n````\n{piece.strip(chr(10))}\n````\n"


# YAML.

_KEY = re.compile(
    r"(?P<lead>[ \t]*(?:- )?)[\"']?[A-Za-z][\w .-]{0,40}[\"']?:[ \t]*[|>][-+]?\d?[-+]?[ \t]*"
)


def of_literals(text: str) -> str:
    """Returns a block for each literal of YAML (`code: |`)."""
    if "|" not in text and ">" not in text:
        return ""
    lines = text.split("\n")
    pieces: list[str] = []
    index = 0
    while index < len(lines):
        key = _KEY.fullmatch(lines[index])
        index += 1
        if key is None:
            continue
        start = index
        while index < len(lines) and _is_deeper(lines[index], len(key["lead"])):
            index += 1
        pieces.append(fenced(_without_margin(lines[start:index])))
    return "".join(pieces)


def _is_deeper(line: str, width: int) -> bool:
    return not line.strip() or len(line) - len(line.lstrip(" \t")) > width


def _without_margin(lines: Sequence[str]) -> str:
    first = next((line for line in lines if line.strip()), "")
    margin = len(first) - len(first.lstrip(" \t"))
    return "\n".join(line[margin:] for line in lines)


# Strings of Python and TOML.

_TRIPLE = re.compile(r"(?P<quotes>\"\"\"|''')(?P<text>.*?)(?P=quotes)", re.DOTALL)


def of_triple_quotes(text: str) -> str:
    """Returns a block for each string of several lines between three quotes."""
    strings = (match["text"] for match in _TRIPLE.finditer(text))
    return "".join(fenced(string) for string in strings if "\n" in string)


# JSON.

_VALUE = re.compile(
    r"^[ \t]*(?:(?:\[[A-Z_]{1,20}\](?:\w{1,40}\[ARGS\])?|<[^<>\n]{1,60}>|functools)[ ]?)?"
    r"(?=[{\[]\s*[\"{\[])",
    re.MULTILINE,
)


def json_values(text: str) -> Iterator[Any]:
    """Yields the values of JSON that begin a line, or follow a mark there (`[TOOL_CALLS]`,
    `<tool_call>`), within prose."""
    decoder, position = json.JSONDecoder(strict=False), 0
    for count, beginning in enumerate(_VALUE.finditer(text)):
        if count == _MOST_VALUES:
            return
        if beginning.end() < position:
            continue
        try:
            value, position = decoder.raw_decode(text, beginning.end())
        except (ValueError, RecursionError):
            continue
        yield value


# Notebooks as text.

_CELL = re.compile(r"^[ \t]*(?:In|Out)[ ]?\[[ \d*]{0,5}\]:[ \t]*$", re.MULTILINE)


def of_cells(text: str) -> str:
    """Returns the text with fences for prompts of a notebook that stand on lines of their own."""
    return _CELL.sub("```\n```", text) if _CELL.search(text) else ""


# Sessions of a shell.

_COMMAND = re.compile(r"^[ \t]*(?:\w[\w@:~./-]{0,60})?[$%][ ]\S.*$", re.MULTILINE)


def of_commands(text: str) -> str:
    """Returns the text with fences for the commands of a shell, between which stands their
    output, such as that of `cat`."""
    return _COMMAND.sub("```\n```", text) if _COMMAND.search(text) else ""
