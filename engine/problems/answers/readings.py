"""Other ways to read an answer that holds no program as Markdown: sessions, spans, web pages, JSON,
numbered lines.

Each reading is a pure function from a text to another, empty if the text has nothing of its kind,
and takes time linear in the text. They are tried only where nothing else holds the program, so
none of them changes what an answer with a proper block means.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from engine.problems.answers import diffs
from engine.problems.answers.blocks import OTHERS, contents, spans, without_languages
from engine.problems.answers.code import Code, parsed
from engine.problems.answers.embedded import (
    json_values,
    of_cells,
    of_commands,
    of_literals,
    of_triple_quotes,
)
from engine.problems.answers.pieces import joined

_READ = {
    "pycon", "console", "terminal", "shell-session", "shellsession", "output", "json",
    "jsonc", "html", "xml", "diff", "patch", "toml", "yaml", "yml",
}  # fmt: skip
"""Languages whose blocks may hold Python."""
_NOT_CODE = OTHERS - _READ
MAX_DEPTH = 100
"""Levels of JSON that are searched."""


def further(text: str, entry_point: str | None) -> Iterator[str]:
    """Yields other readings of a text, the likeliest first.

    Of a session, bare expressions after the last definition show values alone; a program for stdin
    (`entry_point` empty) keeps them.
    """
    text = without_languages(text, _NOT_CODE)
    first = [reading for read in (_of_tags, _of_strings, _of_escapes) if (reading := read(text))]
    for one in (text, *first):
        yield from () if one is text else (one,)
        for reading in (
            of_cells(one),
            _of_session(one, keep_expressions=entry_point == ""),
            _of_spans(one),
            _of_numbered(one),
            _of_labels(one),
            diffs.applied(one),
            _of_margins(one),
            _of_quotes(one),
            _of_punctuation(one),
            _of_values(one),
            of_literals(one),
            of_triple_quotes(one),
            of_commands(one),
        ):
            if reading:
                yield reading
    yield from joined(contents(text), entry_point)


# Web pages, forums and wikis.

_TAG = re.compile(
    r"(?P<block></?pre\b[^<>]{0,200}>(?:\s{0,9}</?code\b[^<>]{0,200}>)?|</code>\s{0,9}</pre>"
    r"|</?(?:code|tt)\b[^<>]{0,200}>|\{noformat\}|\[/?(?:code(?:=\w{0,20})?|python3?|py)\]|\{code(?::\w{0,20})?\}"
    r"|\{%-?[ ]?(?:end)?(?:highlight|raw|code)\b[^%\n]{0,60}%\})"
    r"|(?P<line><br\s?/?>|</?(?:p|div|li|ul|ol|h[1-6]|table|tr|section|article|body|html)\b"
    r"[^<>]{0,200}>|<!--|-->)"
    r"|(?P<nothing></?(?:span|font|b|i|em|strong|a|td|th|mark|var|kbd)\b[^<>]{0,200}>"
    r"|<!\[CDATA\[|\]\]>)",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:[a-z]{2,6}|#\d{2,5}|#x[\da-f]{2,4});", re.IGNORECASE)


def _of_tags(text: str) -> str:
    """Returns the text of a web page with fences for its code, and characters for entities."""
    has_tags = _TAG.search(text) is not None
    if not has_tags and not _ENTITY.search(text):
        return ""
    if has_tags:
        text = _TAG.sub(lambda tag: _REPLACED[tag.lastgroup or ""], text)
    return html.unescape(text)


_REPLACED = {"block": "\n```\n", "line": "\n", "nothing": ""}


# JSON and strings.


def _of_strings(text: str) -> str:
    """Returns the strings of an answer, or of its only block, that is JSON or a Python string."""
    inner = text.strip()
    for beginning, end in (_ELEMENT, _BLOCK):
        if opening := beginning.match(inner):
            inner = end.sub("", inner[opening.end() :]).strip()
    if inner[:1] not in ("{", "[", '"', "'"):
        return ""
    return "\n\n".join(_strings_in(_value_of(inner), 0))


_ELEMENT = re.compile(r"<\w{1,40}>"), re.compile(r"</\w{1,40}>\Z")
_BLOCK = re.compile(r"```\w{0,20}(?=\s)"), re.compile(r"```\Z")


def _value_of(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        module = parsed(text)
        node = module.body[0] if module and len(module.body) == 1 else None
        if isinstance(node, ast.Expr):
            try:
                return ast.literal_eval(node.value)
            except (ValueError, TypeError, MemoryError, RecursionError):
                return None
        # MBPP's own prompt shows programs of several lines between single quotes.
        return text[1:-1] if text[:1] in "\"'" and text[-1] == text[0] else None


def _strings_in(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < MAX_DEPTH and isinstance(value, list):
        # A notebook has one string for each line.
        if value and all(isinstance(item, str) for item in value):
            yield "".join(value)
        else:
            for item in value:
                yield from _strings_in(item, depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, dict):
        # Of a notebook's cells, the code.
        is_cell = "cell_type" in value and "source" in value
        items = [value["source"]] if is_cell and value["cell_type"] == "code" else []
        for item in items if is_cell else value.values():
            yield from _strings_in(item, depth + 1)


def _of_values(text: str) -> str:
    """Returns the strings of the values of JSON that stand within prose."""
    return "\n\n".join(string for one in json_values(text) for string in _strings_in(one, 0))


def _of_escapes(text: str) -> str:
    r"""Returns a text on one line with line ends for `\n`, else one without escapes of Markdown."""
    text = text.strip()
    if "\n" not in text and "\\n" in text:
        return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    plain = re.sub(r"\\([_*`#<>])", r"\1", text)
    return plain if plain != text else ""


# Sessions of an interpreter.

_PROMPT = re.compile(r"[ \t]*(?:>{3,4}[ \t]?|In \[\d{0,5}\]:[ \t]?)(?P<code>.*)")
_MORE = re.compile(r"[ \t]*\.{3,}(?::[ \t]?|[ \t]|$)(?P<code>.*)")
_LEAVES = re.compile(r"(?:exit|quit)\(\)|help\(.*\)|\d+\Z")


def _of_session(text: str, *, keep_expressions: bool) -> str:
    """Returns the text with a block of the statements for each session (`>>>`, `In [1]:`).

    A statement whose output is a traceback, and `exit()`, are no part of it.
    """
    if ">>>" not in text and "In [" not in text:
        return ""
    pieces: list[str] = []
    statements: list[str] = []
    index, lines = 0, text.split("\n")
    while index < len(lines):
        prompt = _PROMPT.match(lines[index])
        if prompt is None:
            if statements and lines[index].lstrip().startswith(("```", "~~~")):
                pieces.append(_session(statements, keep_expressions))
                statements = []
            pieces.append(lines[index])
            index += 1
            continue
        code, output, index = _statement(lines, index, prompt)
        if code.strip() and not _LEAVES.match(code.strip()) and not _failed(output):
            statements.append(code)
    pieces.append(_session(statements, keep_expressions))
    return "\n".join(pieces)


def _statement(
    lines: Sequence[str], index: int, prompt: re.Match[str]
) -> tuple[str, list[str], int]:
    """Returns a statement of a session, its output, and the index of the line after that."""
    code = [prompt["code"]]
    index += 1
    while index < len(lines) and (more := _MORE.match(lines[index])):
        code.append(more["code"])
        index += 1
    output: list[str] = []
    while index < len(lines) and not _ends_output(lines[index]):
        output.append(lines[index])
        index += 1
    return "\n".join(code) + "\n", output, index


def _ends_output(line: str) -> bool:
    return not line.strip() or "```" in line or "~~~" in line or _PROMPT.match(line) is not None


def _failed(output: Sequence[str]) -> bool:
    return any(
        line.lstrip().startswith("Traceback (most recent")
        or re.match(r"\s*\w+(?:Error|Exception): ", line)
        for line in output
    )


def _session(statements: Sequence[str], keep_expressions: bool) -> str:
    if not statements:
        return ""
    kept = list(statements)
    while kept and not keep_expressions and _is_expression(kept[-1]):
        kept.pop()
    return "\n".join(["```", *(text.rstrip("\n") for text in kept), "```"])


def _is_expression(text: str) -> bool:
    module = parsed(text)
    return module is not None and Code(text, module).is_expression


# Code within lines.

_ALONE = re.compile(r"[ \t]*`(?P<code>[^`]+)`[ \t]*")
_NAMED = re.compile(r"\A(?:python3?|py)(?:\n|[ \t]+(?=\S))")


def _of_spans(text: str) -> str:
    """Returns a block for each piece of code between single or double ticks, which may take several
    lines; one for lines that each stand between ticks."""
    if "`" not in text:
        return ""
    blocks: list[str] = []
    alone: list[str] = []
    for line in [*text.split("\n"), ""]:
        if match := _ALONE.fullmatch(line):
            alone.append(match["code"])
            continue
        if len(alone) > 1:
            blocks.append("\n".join(alone))
        alone = []
    blocks += [_NAMED.sub("", span.strip(" ")).strip("\n") for span in spans(text, 1, 2)]
    return "\n\n".join(f"````\n{block}\n````" for block in blocks if block.strip())


# Numbered lines.

_NUMBER = re.compile(
    r"[ \t]*(?:L(?:ine[ \t])?|[\[(#]|/\*[ \t]?)?(?P<number>\d{1,6})"
    r"(?:[ \t]*(?:[|→│┃:]|\*/|[.)\]-](?=[ \t]|$))|[ \t]|$)(?P<rest>.*)"
)


def _of_numbered(text: str) -> str:
    """Returns the text with a block for each run of lines that are numbered one after another."""
    pieces: list[str] = []
    run: list[str] = []
    last = -1
    changed = False
    for line in [*text.split("\n"), "end"]:
        match = _NUMBER.match(line)
        number = int(match["number"]) if match else -2
        if match and run and number == last + 1:
            run.append(match["rest"])
        else:
            changed |= len(run) > 1
            pieces += ["```", *_without_margin(run), "```"] if len(run) > 1 else []
            run = [match["rest"]] if match else []
            pieces += [] if match else [line]
        last = number
    return "\n".join(pieces[:-1]) if changed else ""


def _without_margin(lines: Sequence[str]) -> list[str]:
    """Returns lines without the blanks that all of them begin with."""
    margins = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
    margin = min(margins, default=0)
    return [line[margin:] if line.strip() else "" for line in lines]


# Labels, quotes, punctuation.

_LABEL = re.compile(
    r"^[ \t>*#-]*[A-Za-z][\w ]{0,40}:[ \t*]*(?=(?:async[ \t]+)?def[ \t]+\w+[ \t]*\(|class[ \t]+\w+"
    r"[ \t]*[:(]|import[ \t]+\w|from[ \t]+[\w.]+[ \t]+import\b|@\w)",
    re.MULTILINE,
)
_OPENED = re.compile(
    r"^[ \t]*<[A-Za-z][^<>\n]{0,80}>[ \t]*(?=(?:async[ ]def|def|class|import|from)[ ]|@\w)",
    re.MULTILINE,
)
_CLOSED = re.compile(r"</[A-Za-z][\w:-]{0,40}>[ \t]*$", re.MULTILINE)
_TAGGED = re.compile(
    r"^([ \t]*(?:`{3,}|~{3,})[ \t]*(?:python3?|py))(?=(?:async def|def|class|import|from) |@\w)",
    re.MULTILINE,
)


def _of_labels(text: str) -> str:
    """Returns the text with code that follows a label (`Answer: def ...`), or stands in an element
    (`<arg_value>def ...`), on lines of its own."""
    changed = _TAGGED.sub(r"\1\n", _LABEL.sub("\n\n", text))
    if _OPENED.search(changed):
        changed = _CLOSED.sub("\n", _OPENED.sub("\n", changed))
    return changed if changed != text else ""


def _of_margins(text: str) -> str:
    """Returns the text without the marks of quoted lines and margins."""
    changed = _MARGIN.sub("", text)
    return changed if changed != text else ""


def _of_quotes(text: str) -> str:
    """Returns the text without such marks, and with fences for lines of three quotes or colons, of
    which the former may also end a docstring."""
    plain = _MARGIN.sub("", text)
    changed = _QUOTE_FENCE.sub("```", plain)
    return changed if changed != plain else ""


_MARGIN = re.compile(r"^[ \t]*(?:>!|[>|│┃])[ ]?", re.MULTILINE)


_QUOTE_FENCE = re.compile(
    r"^[ \t]*(?:'''|\"\"\"|:{3,}(?:[ \t]*(?:py\w*|code)(?=[ \t]*$))?)[ \t]*$", re.MULTILINE
)


def _of_punctuation(text: str) -> str:
    """Returns the text with Python's own quotes, brackets and line ends for those of a word
    processor or another language."""
    changed = text.translate(_PUNCTUATION)
    return changed if changed != text else ""


_PUNCTUATION = {
    ord(other): own
    for own, others in {
        '"': "“”„‟«»＂", "'": "‘’‚‛＇´", "(": "（", ")": "）", "[": "［【", "]": "］】",
        "{": "｛", "}": "｝",
        ",": "，、", ":": "：", ";": "；", "=": "＝", "+": "＋", "*": "＊×", "<": "＜", ">": "＞",
        "-": "－−–", "\n": "\u2028\u2029\x85\x0b",
    }.items()
    for other in others
}  # fmt: skip
