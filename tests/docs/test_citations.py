"""Tests that everything cited by documents, docstrings and comments exists.

Citations are files, sections, links and anchors.
"""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, anchors, headings, links, pages, prose

TOP = "engine|webapp|workers|tests|benchmarks|docs|static|deploy"
_PATH = re.compile(rf"(?<![\w/.:-])((?:{TOP})/[\w./*-]*[\w/])")
_PLACEHOLDER = re.compile(r"(?:^|[/._-])[A-Z][A-Z_]+(?:$|[/._-])")  # engine/recipes/NAME.toml
_MARKDOWN = re.compile(r"(?<![\w/.-])([\w.-]+\.md)\b")
_SECTIONS = re.compile(r"\b[Ss]ections? (\d+)(?:(?:,| and) (\d+))*")
_QUOTED = re.compile(r'(docs/[\w/-]+\.md),\s+"([^"]+)"')
_SOURCE = re.compile(r"(docs/[\w/-]+\.md)|arXiv|\d{4}\.\d{5}|\bRFC \d+|ScaleRL", re.ASCII)
GONE = {"docs/production.md"}  # named in a release's changes
_REACH = 200  # characters between a source and the cited section of it


def missing_paths(text: str) -> list[str]:
    """Cited paths, relative to the repository root, that do not exist."""
    found = {path.rstrip("/.") for path in _PATH.findall(text) if not _PLACEHOLDER.search(path)}
    found -= GONE
    return sorted(path for path in found if not _is_there(path))


def _is_there(path: str) -> bool:
    if "*" in path:
        return any(ROOT.glob(path))
    return (ROOT / path).exists() or any(ROOT.glob(f"{path}.*"))  # engine/credit/shaping


def missing_documents(text: str) -> list[str]:
    """Documents that a text names without a folder: they must be at the root."""
    return sorted(name for name in set(_MARKDOWN.findall(text)) if not (ROOT / name).exists())


def missing_sections(text: str) -> list[str]:
    """Cited sections without a source, or of a document that has no such section."""
    problems = []
    for match in _SECTIONS.finditer(text):
        before = text[max(0, match.start() - _REACH) : match.end() + 60]
        sources = list(_SOURCE.finditer(before))
        document = next((s[1] for s in reversed(sources) if s[1]), None)
        if not sources:
            problems.append(f"{match[0]}: of which source?")
        elif document is not None:
            numbers = re.findall(r"\d+", match[0])
            problems += [f"{document}, section {n}" for n in numbers if not has(document, n)]
    problems += [
        f'{document}, "{title}"'
        for document, title in _QUOTED.findall(re.sub(r"\s+", " ", text))
        if not ((ROOT / document).exists() and title in headings(ROOT / document))
    ]
    return problems


def has(document: str, number: str) -> bool:
    path = ROOT / document
    return path.exists() and any(title.split()[0] == number for title in headings(path))


def test_every_path_that_is_cited_exists():
    problems = [(name(file), path) for file, text in prose() for path in missing_paths(text)]
    assert not problems


def test_every_document_that_is_cited_exists():
    code = [(file, text) for file, text in prose() if file.suffix != ".md"]
    assert not [(name(file), one) for file, text in code for one in missing_documents(text)]


def test_every_section_that_is_cited_exists():
    code = [(file, text) for file, text in prose() if file.suffix != ".md"]
    assert not [(name(file), one) for file, text in code for one in missing_sections(text)]


@pytest.mark.parametrize("page", pages(), ids=lambda page: name(page))
def test_every_link_leads_somewhere(page):
    problems = []
    for target in links(page):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            problems.append(target)
    assert not problems


def name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


class TestTheChecksThemselves:
    """Each kind of wrong citation is detected."""

    def test_paths(self):
        wrong = "see `engine/nowhere.py`, tests/none/test_a.py and engine/recipes/NAME.toml"
        assert missing_paths(wrong) == ["engine/nowhere.py", "tests/none/test_a.py"]
        assert not missing_paths("engine/search, `engine/search/tree.py`, manage.py, a/engine/b")

    def test_documents(self):
        assert missing_documents("as of mars.md and README.md") == ["mars.md"]

    def test_sections(self):
        assert not missing_sections("docs/algorithm.md, sections 4 and 9")
        assert not missing_sections("arXiv 2402.03300, section 4.2")
        assert missing_sections("docs/algorithm.md, section 77")
        assert missing_sections("as section 5 says")
        assert missing_sections('docs/architecture.md, "No such heading"')
        assert not missing_sections('docs/architecture.md, "Run states"')
