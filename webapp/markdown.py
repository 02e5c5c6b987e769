"""Renderer of Markdown as HTML that is safe to show, whatever its author wrote.

Two defences: the parser knows no HTML, and its output is filtered by allowed tags and schemes.
Pictures are left out: the page's policy would refuse foreign ones.

Invariant: the work and the HTML of one text are bounded, because every visitor of its page pays for
it. A short text can require much: a header of 1,250 columns over 2,400 rows of one character makes
65,000 cells of 10 KB. What exceeds a bound is shown as it was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import nh3
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import table
from markdown_it.token import Token

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li",
    "ol", "p", "pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}

MOST_CHARACTERS = 50_000
"""Maximum length of a text that is parsed."""
MOST_CELLS = 1000
"""Maximum number in all tables of one text; tables beyond it are shown as their source."""
MOST_BRACKETS = 1000
"""Maximum number of `[` in one text: each is examined as the start of a link."""
_FREE_HTML = 20_000
_MOST_EXPANSION = 2
"""HTML has at most `_FREE_HTML` and this many times the characters of its text."""
_CACHED = 512
"""Texts whose HTML each process caches, by their content: at most 60 MB."""


def _bounded_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """markdown-it's rule of tables, restricted to those that fit in `MOST_CELLS`."""
    if state.env.get("no_more_tables") or not table(state, start, end, True):
        return False
    columns = state.src[state.bMarks[start] : state.eMarks[start]].count("|") + 1
    last = next((line for line in range(start, end) if state.isEmpty(line)), end)
    cells = state.env.get("cells", 0) + columns * (last - start)
    if cells > MOST_CELLS:
        state.env["no_more_tables"] = True  # counted once: every further line would count again
        return False
    if silent:
        return True
    state.env["cells"] = cells
    return table(state, start, end, False)


_parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_parser.disable("image")
_parser.block.ruler.at("table", _bounded_table, {"alt": ["paragraph", "reference"]})


def render(text: str) -> SafeString:
    """HTML of the Markdown, or of the text as it is if it exceeds the bounds. Headings start at the
    third level: the page has its own above."""
    small = len(text) <= MOST_CHARACTERS and text.count("[") <= MOST_BRACKETS
    return _rendered(text) if small else _as_written(text)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block that is not rendered here."""

    info: str
    """What follows the fence, without its first word."""
    lines: tuple[str, ...]
    """Between the fences."""
    line: int
    """Number of the line of its first fence, from 1; the first of `lines` follows it."""


def render_around(text: str, word: str) -> tuple[SafeString | Block, ...]:
    """HTML of the Markdown, as of `render`, and in between its fenced blocks that begin with `word`
    after the fence. A block within a list or a quotation is code, as any other."""
    small = len(text) <= MOST_CHARACTERS and text.count("[") <= MOST_BRACKETS
    return _rendered_around(text, word) if small else (_as_written(text),)


@lru_cache(_CACHED)
def _rendered_around(text: str, word: str) -> tuple[SafeString | Block, ...]:
    pieces: list[list[Token] | Block] = [[]]
    for token in _parser.parse(text):
        first, _, info = token.info.strip().partition(" ")
        if token.type == "fence" and token.level == 0 and first == word and token.map:
            lines = tuple(token.content.splitlines())
            pieces += [Block(info.strip(), lines, token.map[0] + 1), []]
        elif isinstance(pieces[-1], list):
            pieces[-1].append(token)
    html = [one if isinstance(one, Block) else _html(one) for one in pieces]
    if sum(len(one) for one in html if not isinstance(one, Block)) > _most_html(text):
        return (_as_written(text),)
    return tuple(one if isinstance(one, Block) else _cleaned(one) for one in html if one)


@lru_cache(_CACHED)
def _rendered(text: str) -> SafeString:
    html = _html(_parser.parse(text))
    return _as_written(text) if len(html) > _most_html(text) else _cleaned(html)


def _html(tokens: list[Token]) -> str:
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
    return _parser.renderer.render(tokens, _parser.options, {})


def _most_html(text: str) -> int:
    return _FREE_HTML + _MOST_EXPANSION * len(text)


def _cleaned(html: str) -> SafeString:
    cleaned = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="nofollow noopener noreferrer",
    )
    return mark_safe(cleaned)  # nosec B308, B703


def _as_written(text: str) -> SafeString:
    return format_html("<pre>{}</pre>", text)
