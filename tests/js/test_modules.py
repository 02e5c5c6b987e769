"""Tests of the pure modules of static/js in a real Chromium: one test per file."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path.name for path in Path(__file__).parent.glob("*.test.js"))

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("name", FILES)
def test_a_module_does_what_its_tests_say(module_page, name):
    results = module_page.evaluate(
        """async (name) => {
            const { tests, run } = await import("/tests/js/check.js");
            tests.length = 0;
            await import(`/tests/js/${name}`);
            return run();
        }""",
        name,
    )
    assert results, f"{name} holds no test"
    failed = [f"{one['name']}: {one['error']}" for one in results if one["error"]]
    assert not failed, "\n".join(failed)


OF_A_PAGE = re.compile(
    r"(?<!\.)\b(document|window|location|history|localStorage|navigator)\b(?=[.\[)])"
    r"|\b(addEventListener|requestAnimationFrame|matchMedia|getComputedStyle|ResizeObserver"
    r"|IntersectionObserver|HTMLElement|WebSocket|fetch|Path2D|devicePixelRatio)\b"
)
"""Globals that only a page has. A module whose code names none of them is pure."""
COMMENTS = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
IMPORTED = re.compile(r'from "\.{1,2}/(?:[\w-]+/)*([\w-]+)\.js"')


def pure_modules() -> set[str]:
    """Modules that need no page and import none that does."""
    code = {
        path.stem: COMMENTS.sub("", path.read_text())
        for path in (ROOT / "static" / "js").rglob("*.js")
    }
    pure = {name for name, text in code.items() if not OF_A_PAGE.search(text)}
    while bound := {name for name in pure if set(IMPORTED.findall(code[name])) - pure}:
        pure -= bound
    return pure


def test_every_pure_module_has_tests():
    pure = pure_modules()
    assert {"fold", "layout", "time-machine"} <= pure and not {"dom", "run-page"} & pure
    assert sorted(pure - {name.removesuffix(".test.js") for name in FILES}) == []


@pytest.mark.parametrize("place", ["static", "tests"])
def test_vendored_files_equal_the_published_ones(place):
    vendor = ROOT / place / "vendor"
    libraries = json.loads((vendor / "VENDOR.json").read_text())
    listed = {file["path"]: file["sha256"] for library in libraries for file in library["files"]}
    results = {
        str(path.relative_to(vendor)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in vendor.rglob("*")
        if path.is_file() and path.name != "VENDOR.json"
    }
    assert results == listed
    for library in libraries:
        assert library["name"] and library["version"] and library["license"] and library["source"]
        assert any(file["path"].endswith("/LICENSE") for file in library["files"])


def test_the_run_page_stays_small():
    """Everything that the page loads is at most 250 kB compressed."""
    import gzip

    files = [*(ROOT / "static" / "js").rglob("*.js"), *(ROOT / "static" / "vendor").rglob("*.js")]
    size = sum(len(gzip.compress(path.read_bytes())) for path in files)
    assert size <= 250_000, f"{size} bytes of JavaScript"
