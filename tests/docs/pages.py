"""The project's documents as tests read them: pages, headings, links, and prose in code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("engine", "webapp", "workers", "tests", "benchmarks", "docs", "static/js", "static/css")
OF_OTHERS = ("static/vendor", "tests/vendor", "tests/engine/sandbox/attacks")

_FENCE = re.compile(r"^(```+)(.*?)\n(.*?)^\1[ ]*$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^(#{1,6}) (.+?)\s*$", re.MULTILINE)
_LINK = re.compile(r"(?<!\\)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`]*`")
_COMMENTS = re.compile(r"(?:^[ ]*# [^\n]*\n)+|(?<=[ ]{2})# [^\n]*", re.MULTILINE)
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/|(?:^\s*//[^\n]*\n)+|\{#.*?#\}", re.DOTALL | re.MULTILINE)


def pages() -> list[Path]:
    """Every Markdown page of the repository: at its root, in `docs` and in `.github`."""
    results = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob(".github/**/*.md")]
    return sorted(results)


def without_fences(text: str) -> str:
    return _FENCE.sub("", text)


def headings(page: Path) -> list[str]:
    return [title for _, title in _HEADING.findall(without_fences(page.read_text("utf-8")))]


def anchors(page: Path) -> set[str]:
    """Ids of the headings, as GitHub and the site derive them."""
    return {slug(title) for title in headings(page)}


def slug(title: str) -> str:
    kept = re.sub(r"[^\w\s-]", "", title.replace("`", "").lower())
    return re.sub(r"\s+", "-", kept.strip())


def links(page: Path) -> list[str]:
    """Targets of a page's links and pictures, except those within code."""
    return _LINK.findall(_CODE.sub("`", without_fences(page.read_text("utf-8"))))


@cache
def prose() -> list[tuple[Path, str]]:
    """(file, text) of every page, and of every docstring and comment of the code."""
    return list(_prose())


def _prose() -> Iterator[tuple[Path, str]]:
    for page in pages():
        yield page, page.read_text("utf-8")
    for path in _sources():
        text = path.read_text("utf-8")
        found = _python(text) if path.suffix == ".py" else _BLOCK_COMMENT.findall(text)
        for one in found:
            yield path, one


def _sources() -> Iterator[Path]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            inside = path.relative_to(ROOT).as_posix()
            if path.suffix in (".py", ".js", ".css", ".html") and not inside.startswith(OF_OTHERS):
                yield path


def _python(text: str) -> Iterator[str]:
    """Bare string statements (docstrings, also of fields) and blocks of comment lines."""
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text and isinstance(node.value.value, str):
            yield node.value.value
    yield from _COMMENTS.findall(text)
