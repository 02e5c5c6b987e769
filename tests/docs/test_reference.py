"""Tests of the generated pages: they match the code, and undescribed items are reported."""

import os
import re
import subprocess
import sys

import pytest

from docs.generate import environment, events, markdown, settings
from docs.generate.pages import differing, write
from tests.docs.pages import ROOT, pages
from tests.helpers.waiting import patience


@pytest.mark.service
def test_the_generated_pages_are_those_of_the_code(tmp_path):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GROVE_")}
    done = subprocess.run(
        [sys.executable, "-m", "docs.generate", "--check"],
        cwd=ROOT,
        env={**clean, "GROVE_VAR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120 * patience(),
    )
    assert done.returncode == 0, f"run `make docs`:\n{done.stdout}{done.stderr}"


def test_edited_or_missing_generated_pages_are_reported(tmp_path):
    made = {"docs/a.md": "A\n", "docs/b.md": "B\n", "docs/c.md": "C\n"}
    write({"docs/a.md": "A\n", "docs/b.md": "B, by hand\n"}, tmp_path)
    assert list(differing(made, tmp_path)) == ["docs/b.md", "docs/c.md"]


def test_an_undocumented_variable_is_named(tmp_path):
    text = environment.MEANINGS.read_text("utf-8")
    (tmp_path / "environment.toml").write_text(text.replace("GROVE_PORT", "GROVE_HARBOUR"))
    with pytest.raises(environment.NotDescribed, match="GROVE_HARBOUR, GROVE_PORT"):
        environment.page(tmp_path / "environment.toml")


def test_every_event_and_every_field_of_one_is_described():
    _, *sections = re.split(r"^## (.+)\n+", events.page(), flags=re.MULTILINE)
    texts = dict(zip(sections[::2], sections[1::2], strict=True))
    assert {"run.state", "agent.update", "LearnedNode", "Verdict"} <= set(texts)
    assert not [name for name, text in texts.items() if text.startswith("|")]
    rows = [(name, row) for name, text in texts.items() for row in text.splitlines()]
    assert not [(name, row) for name, row in rows if re.search(r"\|\s*\|$", row)]


def test_no_generated_page_names_the_machine():
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        assert str(ROOT) not in page.read_text("utf-8")


def test_text_of_docstrings_is_no_markup():
    assert markdown.escaped("a*b <c> [d] `e*f` g_h _i_") == r"a\*b \<c> \[d\] `e*f` g_h \_i\_"
    assert "a \\| b" in markdown.table(("x",), [("a | b",)])
    assert markdown.table(("x",), []) == ""


def unknown_settings(text):
    """Paths in code spans that look like settings and are not."""
    named = re.findall(r"`((?:agents\.[\w-]+|\w+)(?:\.\w+)+)(?: ?=[^`]*)?`", text)
    sections = {path.partition(".")[0] for path in settings.paths()}
    paths = {re.sub(r"^agents\.[\w-]+", "agents.NAME", path) for path in named}
    return {path for path in paths if path.partition(".")[0] in sections} - settings.paths()


def test_settings_that_pages_name_exist():
    problems = {
        page.relative_to(ROOT).as_posix(): odd
        for page in pages()
        if (odd := unknown_settings(page.read_text("utf-8")))
    }
    assert not problems


def test_a_documented_setting_that_does_not_exist_is_reported():
    text = "`training.step`, `agents.oak.model = x`, `search.rho=0.97`, `agents.first.modle`, `a.b`"
    assert unknown_settings(text) == {"training.step", "agents.NAME.modle"}
