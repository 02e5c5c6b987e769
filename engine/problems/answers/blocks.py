"""Fenced blocks of an answer as models write them, which is more than CommonMark has.

A fence may stand in a list or a quote, after text, or at the end of a line of code; a block may
stay open, hold fences of its own, or be a whole answer in Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from engine.problems.answers.code import Code
from engine.problems.answers.diffs import is_diff

MAX_ENDS = 12
"""Ends of one block that are tried."""

_FENCE = re.compile(
    r"(?P<lead>(?:[ \t]*>)*[ \t]*(?:(?:[-*+•]|\d{1,9}[.)])[ \t]+)?)"
    r"(?P<ticks>`{3,}|~{3,})(?P<info>.*)$"
)
_AFTER_TEXT = re.compile(
    r"(?P<lead>.*\S[ \t]*)(?<!`)(?P<ticks>`{3,}|(?<=[\s:])~{3,})[ \t]*(?P<info>[\w+#.{}=-]*)[ \t]*$"
)
MAX_TICKS = 200_000
_TICKS = re.compile("`+")
_PYTHON = re.compile(r"(?:python|py|pypy|cpython|ipython|sage)[\d.]*w?|.*\.py")
_LANGUAGE_LINE = re.compile(r"\s*(?:python3?|py)[ \t]*\n", re.IGNORECASE)
_MARKDOWN = frozenset({"markdown", "md", "mdx", "gfm", "commonmark"})
OTHERS = frozenset({
    "abap", "ada", "asm", "assembly", "awk", "bash", "basic", "bat", "batch", "c", "c#", "c++",
    "cc", "clj", "clojure", "cmd", "cobol", "coffee", "coffeescript", "console", "cpp", "cs",
    "csharp", "csh", "css", "csv", "cu", "cuda", "cxx", "d", "dart", "diff", "docker",
    "dockerfile", "elixir", "elm", "erl", "erlang", "ex", "f90", "fish", "fortran", "fs",
    "fsharp", "gdscript", "go", "golang", "graphql", "groovy", "h", "haskell", "hpp", "hs",
    "html", "ini", "java", "javascript", "jl", "js", "json", "json5", "jsonc", "jsonl", "jsx",
    "julia", "kotlin", "ksh", "kt", "latex", "lisp", "log", "lua", "make", "makefile",
    "mathematica", "matlab", "mermaid", "mojo", "nim", "nix", "objc", "objective-c", "ocaml",
    "octave", "output", "pas", "pascal", "patch", "perl", "php", "pl", "plantuml", "powershell",
    "prolog", "proto", "ps1", "pseudo", "pseudo-code", "pseudocode", "pwsh", "pycon", "r",
    "racket", "rb", "rs", "rst", "ruby", "rust", "sass", "scala", "scheme", "scss", "sh",
    "shell", "shell-session", "shellsession", "sml", "solidity", "sql", "starlark", "stderr",
    "stdin", "stdout", "svg", "swift", "tcl", "terminal", "terraform", "tex", "toml",
    "traceback", "ts", "tsv", "tsx", "typescript", "v", "vb", "vba", "verilog", "vhdl", "vim",
    "wasm", "xml", "yaml", "yml", "zig", "zsh",
    "reasoning", "scratchpad", "think", "thinking", "thought", "thoughts",
})  # fmt: skip
_NEUTRAL = frozenset({"text", "txt", "plain", "plaintext", "none", "code", "input", "example"})

INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad"))
"""Characters without width, for `str.translate`, which removes them."""
BLANKS = dict.fromkeys(map(ord, "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
                                "\u2009\u200a\u202f\u205f\u3000"), " ")  # fmt: skip
"""Blanks that Python takes for no blank, for `str.translate`."""


@dataclass(frozen=True, slots=True)
class Tag:
    """Language of a block, as the fence names it."""

    name: str

    @property
    def is_python(self) -> bool:
        return bool(_PYTHON.fullmatch(self.name))

    @property
    def is_markdown(self) -> bool:
        return self.name in _MARKDOWN

    @property
    def is_other(self) -> bool:
        """Whether it names another language than Python."""
        return self.name in OTHERS

    @property
    def is_known(self) -> bool:
        return self.is_python or self.is_markdown or self.is_other or self.name in _NEUTRAL

    @property
    def may_be_python(self) -> bool:
        return self.is_python or not self.name


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, and its code if it parses."""

    tag: Tag
    code: Code | None
    is_inline: bool = False
    """Whether the block is a piece of a line."""
    is_open: bool = False
    """Whether it has no end: the answer ends within it."""
    is_rejected: bool = False
    """Whether the line above it calls it wrong."""


@dataclass(frozen=True, slots=True)
class _Fence:
    lead: str
    ticks: str
    info: str

    @property
    def tag(self) -> Tag:
        return _tag_of(self.info) if self.info else _NO_TAG

    @property
    def is_bare(self) -> bool:
        return not self.info

    def ends(self, other: _Fence) -> bool:
        """Returns whether this fence is of the other's kind, and at least as long."""
        return self.ticks[0] == other.ticks[0] and len(self.ticks) >= len(other.ticks)


_NO_TAG = Tag("")


def _tag_of(info: str) -> Tag:
    words = re.split(r"[\s,:;{}=]+", info.lower().strip("{}. \t"))
    return Tag(words[0].removeprefix("language-").removeprefix("."))


@dataclass(frozen=True, slots=True)
class _End:
    """A place where a block may end: before line `index`; the next text begins at `resume`."""

    index: int
    resume: int
    last: str = ""
    """Rest of the last line before a fence at its end."""
    is_proper: bool = True
    """Whether the fence stands on a line of its own."""


CodeOf = Callable[[str], Code | None]


def blocks(text: str, code_of: CodeOf) -> list[Block]:
    """Returns the fenced blocks in order; those in other languages, and diffs, have no code.

    Where the end of a block is in doubt, it is the first one at which its text is code.
    """
    return list(_Reader(_lines(text), code_of).blocks())


def segments(text: str) -> Iterator[str]:
    """Yields the pieces of text between any two fences that are not in another language."""
    piece: list[str] = []
    other = False
    for line in _lines(text):
        has_ticks = "```" in line or "~~~" in line
        fence = (_fence(line) or _fence_after_text(line)) if has_ticks else None
        if fence is None:
            piece.append(line)
            continue
        if not other:
            yield "".join(piece)
        other = fence.tag.is_other
        piece = list[str]()
    if not other:
        yield "".join(piece)


def without_languages(text: str, names: frozenset[str]) -> str:
    """Returns the text without the blocks in some languages."""
    pieces: list[str] = []
    skipped: _Fence | None = None
    for line in _lines(text):
        has_ticks = "```" in line or "~~~" in line
        fence = (_fence(line) or _fence_after_text(line)) if has_ticks else None
        if skipped is None and fence and fence.tag.name in names:
            skipped = fence
        elif skipped is None:
            pieces.append(line)
        elif fence and fence.is_bare and fence.ends(skipped):
            skipped = None
    return "".join(pieces)


def contents(text: str) -> list[str]:
    """Returns the texts of the fenced blocks that may be Python, whether they parse or not."""
    found: list[str] = []
    opening: _Fence | None = None
    lines: list[str] = []
    for line in _lines(text):
        fence = _fence(line) if "```" in line or "~~~" in line else None
        if opening is None:
            opening, lines = fence, list[str]()
        elif fence and fence.ends(opening):
            if opening.tag.may_be_python:
                found.append(_without_lead(*_unquoted(lines, opening.lead)))
            opening = None
        else:
            lines.append(line)
    return found


def spans(text: str, least: int, most: int = MAX_TICKS) -> Iterator[str]:
    """Yields what stands between two runs of ticks of the same length, at least `least` and at most
    `most`, as code within a line does."""
    runs = [(run.start(), run.end()) for run in _TICKS.finditer(text)]
    nexts: dict[int, int] = {}
    closing: list[int | None] = []
    for index in reversed(range(len(runs))):
        length = runs[index][1] - runs[index][0]
        closing.append(nexts.get(length))
        nexts[length] = index
    closing.reverse()
    index = 0
    while index < len(runs):
        start, end = runs[index]
        close = closing[index] if least <= end - start <= most else None
        if close is None:
            index += 1
            continue
        yield text[end : runs[close][0]]
        index = close + 1


def with_ticks(text: str) -> str:
    """Returns the text with fences of ticks for those of quotes (`'''python`); empty if it has
    none."""
    if not _QUOTE_FENCE.search(text):
        return ""
    return re.sub(r"^([ \t]*)(?:'''|\"\"\")(?=[ \t]*(?:py\w*)?[ \t]*$)", r"\1```", text, flags=re.M)


def without_controls(text: str) -> str:
    """Returns the text without colours of a terminal and control characters, among them NUL, which
    Python does not parse; empty if it has none."""
    changed = _CONTROLS.sub("", text)
    return changed if changed != text else ""


_CONTROLS = re.compile(r"\x1b\[[\d;]{0,20}[A-Za-z]|[\x00-\x08\x0e-\x1f\x7f]")
_QUOTE_FENCE = re.compile(r"^[ \t]*(?:'''|\"\"\")py(?:thon)?3?[ \t]*$", re.MULTILINE)


_REJECTED = re.compile(
    r"[\s>#*_]*(?:❌|✗|✘|(?:(?:(?:an?|the|this is(?: an?)?|this would be(?: an?)?) )?"
    r"(?:incorrect|wrong|bad|buggy|broken)"
    r"(?: (?:answer|approach|attempt|code|example|solution|version|way))?"
    r"|(?:(?:an?|one|the|another) )?(?:common|frequent|typical) (?:mistake|error|pitfall)s?"
    r"(?: (?:is|are|would be))?(?: (?:this|to write))?"
    r"|(?:do not|don't|never|avoid) (?:(?:do|write|use) )?this|what not to do)[\s:.*_]*$)",
    re.IGNORECASE,
)
"""Labels that consist of the judgement alone."""


class _Reader:
    def __init__(self, lines: Sequence[str], code_of: CodeOf):
        self.lines, self.code_of = lines, code_of
        self.fences = {
            index: fence
            for index, line in enumerate(lines)
            if ("```" in line or "~~~" in line) and (fence := _fence(line))
        }

    def blocks(self) -> Iterator[Block]:
        index = 0
        while index < len(self.lines):
            line = self.lines[index]
            fence = self.fences.get(index)
            if fence is None and ("```" in line or "~~~" in line):
                fence = _fence_after_text(line)
                if fence is None:
                    yield from self._inline(line)
            if fence is None or fence.tag.is_markdown:
                index += 1
                continue
            is_rejected = self._is_rejected(index)
            block, index = self._block(fence, index + 1)
            yield replace(block, is_rejected=True) if is_rejected else block

    def _is_rejected(self, index: int) -> bool:
        """Returns whether the label of the fence in line `index` calls the block wrong."""
        above = (line for line in self.lines[max(0, index - 2) : index][::-1] if line.strip())
        return bool(_REJECTED.match(next(above, "")))

    def _block(self, fence: _Fence, start: int) -> tuple[Block, int]:
        """Returns the block that begins at line `start`, and the line after it."""
        later = self._ends(fence, start)
        ends: list[_End] = []
        for end in later:
            ends.append(end)
            if end.is_proper:
                break
        first = next((end for end in ends if end.is_proper), ends[0])
        if fence.tag.is_other:
            return Block(fence.tag, None), first.resume
        order = [first, *(end for end in ends if not end.is_proper and end.index <= first.index)]
        # A fence within a string of the program ends no block.
        whole = "".join(self.lines[start : first.index])
        if is_diff("".join(_unquoted(self.lines[start : first.index], fence.lead)[0])):
            return Block(Tag("diff"), None), first.resume
        if '"""' in whole or "'''" in whole:
            order += [end for end in (*ends, *later) if end.index > first.index]
        for end in order:
            if code := self._code(self._readings(fence, start, end)):
                is_open = end.resume == end.index == len(self.lines)
                return Block(fence.tag, code, is_open=is_open), end.resume
        return Block(fence.tag, None), first.resume

    def _code(self, readings: Iterable[str]) -> Code | None:
        return next((code for one in readings if (code := self.code_of(one))), None)

    def _inline(self, line: str) -> Iterator[Block]:
        for text in spans(line, 3):
            first, _, rest = text.lstrip(" \t").partition(" ")
            tag = Tag(first.lower())
            if tag.is_python and rest:
                yield Block(tag, self.code_of(f"{rest.strip()}\n"), is_inline=True)
            elif not tag.is_other:
                yield Block(Tag(""), self.code_of(f"{text.strip()}\n"), is_inline=True)

    def _ends(self, fence: _Fence, start: int) -> Iterator[_End]:
        """Yields where the block may end, at most `MAX_ENDS` places."""
        count = 0
        for index in range(start, len(self.lines)):
            line = self.lines[index]
            if fence.ticks[:3] not in line:
                continue
            found = self.fences.get(index)
            if found and found.ticks[0] == fence.ticks[0]:
                if not found.ends(fence):
                    continue
                opens = not found.is_bare and found.tag.is_known
                yield _End(index, index if opens else index + 1)
            elif fence.ticks in line:
                yield _End(index, index + 1, _before(line, fence.ticks), is_proper=False)
            else:
                continue
            count += 1
            if count == MAX_ENDS:
                return
        yield _End(len(self.lines), len(self.lines))

    def _readings(self, fence: _Fence, start: int, end: _End) -> list[str]:
        lines = [*self.lines[start : end.index], *([end.last] if end.last else [])]
        readings = _unindented(lines, fence.lead)
        # Code may begin on the line of the fence.
        whole = not fence.tag.is_known
        rest = fence.info if whole else fence.info.partition(" ")[2].strip()
        if re.match(r"(?:def|class|import|from) |@\w|\w+ = ", rest):
            readings = [f"{rest}\n{reading}" for reading in readings] + readings
        # The language may stand on the line after the fence.
        if not fence.info and (named := _LANGUAGE_LINE.match(readings[0])):
            readings = [readings[0][named.end() :], *readings]
        return readings


def _before(line: str, ticks: str) -> str:
    """Returns the code before a fence at its end, or before text after that."""
    line = line.rstrip()
    cut = line.removesuffix(ticks) if line.endswith(ticks) else line.partition(ticks)[0]
    return f"{cut}\n"


def _lines(text: str) -> list[str]:
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [
        line for line in text.split("\n")[-1:] if line
    ]


def _plain(line: str) -> str:
    return line if line.isascii() else line.translate(INVISIBLE).translate(BLANKS)


def _fence(line: str) -> _Fence | None:
    match = _FENCE.match(_plain(line).rstrip("\n"))
    # The language of a fence of ticks holds none, else it is code within a line.
    if match is None or (match["ticks"][0] == "`" and "`" in match["info"]):
        return None
    return _Fence(match["lead"], match["ticks"], match["info"].strip(" \t"))


def _fence_after_text(line: str) -> _Fence | None:
    match = _AFTER_TEXT.match(_plain(line).rstrip("\n"))
    if match is None:
        return None
    earlier = len(re.findall(r"`{3,}", match["lead"]))
    fence = _Fence("", match["ticks"], match["info"])
    if match["ticks"][0] == "~":
        return fence if fence.tag.is_python else None
    known = not fence.info or fence.tag.is_known
    return fence if known and earlier % 2 == 0 and not match["lead"].endswith("`") else None


def _unindented(lines: Sequence[str], lead: str) -> list[str]:
    """Returns the readings of a block's lines: as they are, without the indentation of the fence,
    without their own."""
    lines, lead = _unquoted(lines, lead)
    plain = "".join(lines)
    readings: dict[str, None] = {}
    for text in (plain, *cleaned(plain)):
        own = _lines(text)
        readings[text] = None
        if lead:
            readings[_without_lead(own, lead)] = None
        readings[dedented(own)] = None
    return list(readings)


def _unquoted(lines: Sequence[str], lead: str) -> tuple[Sequence[str], str]:
    """Returns a block's lines, and the indentation of its fence, without marks of a quote."""
    depth = lead.count(">")
    if not depth:
        return lines, lead
    quote = re.compile(rf"[ \t]*(?:>[ \t]?){{1,{depth}}}")
    return [quote.sub("", line, count=1) for line in lines], lead.rpartition(">")[2][1:]


def _without_lead(lines: Sequence[str], lead: str) -> str:
    """Returns lines without the indentation of their fence."""
    width = len(lead.expandtabs(4))
    return "".join(_outdented(line, lead, width) for line in lines)


def _outdented(line: str, lead: str, width: int) -> str:
    if line.startswith(lead):
        return line[len(lead) :]
    blank = line[: len(line) - len(line.lstrip(" \t"))]
    columns = len(blank.expandtabs(4))
    return " " * max(0, columns - width) + line[len(blank) :] if line.strip() else "\n"


def dedented(lines: Sequence[str]) -> str:
    """Returns the lines without the indentation of the first one that is not blank, at most."""
    first = next((line for line in lines if line.strip()), "")
    lead = first[: len(first) - len(first.lstrip(" \t"))]
    return "".join(_outdented(line, lead, len(lead.expandtabs(4))) for line in lines)


def cleaned(text: str) -> list[str]:
    """Returns readings of a text that does not parse because of characters that no one sees: with
    plain blanks at the beginnings of lines, and throughout."""
    if text.isascii():
        return []
    lines = text.split("\n")
    starts = []
    for line in lines:
        rest = line.lstrip(_UNSEEN)
        blank = line[: len(line) - len(rest)].translate(INVISIBLE).translate(BLANKS)
        starts.append(blank + rest.rstrip(_UNSEEN))
    first = "\n".join(starts)
    everywhere = text.translate(INVISIBLE).translate(BLANKS)
    return [one for one in dict.fromkeys((first, everywhere)) if one != text]


_UNSEEN = " \t" + "".join(map(chr, (*INVISIBLE, *BLANKS)))
