"""Tests that the documentation site builds without network and has no dead link."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT
from tests.helpers.large import large_but
from tests.helpers.waiting import patience

pytestmark = pytest.mark.service

ZENSICAL = Path(sys.executable).with_name("zensical")
NO_NETWORK = ("unshare", "--user", "--map-root-user", "--net")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the site's sources, so that building leaves nothing in the repository."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    for page in (*ROOT.glob("*.md"), ROOT / "mkdocs.yml"):
        shutil.copy(page, folder)
    return folder


@pytest.fixture(scope="module")
def site(copy):
    done = build(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    return copy / "build" / "site"


def build(folder):
    works = (
        subprocess.run(
            [*NO_NETWORK, "true"], capture_output=True, timeout=30 * patience()
        ).returncode
        == 0
    )
    return subprocess.run(
        [*(NO_NETWORK if works else ()), ZENSICAL, "build", "--strict", "--clean"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120 * patience(),
    )


def test_every_page_is_in_the_navigation():
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    listed = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    assert set(leaves(listed)) == pages


def leaves(nav):
    for entry in nav:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else leaves(value)


def test_every_link_of_the_site_leads_somewhere(site):
    problems = []
    for page in site.rglob("*.html"):
        if page.name == "404.html":  # addresses are relative to the site's root
            continue
        text = page.read_text("utf-8")
        for target in re.findall(r'(?:href|src)="([^"]+)"', text):
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            if re.match(r"[a-z]+:", target):
                continue
            if not there.exists() or (anchor and f'id="{anchor}"' not in there.read_text("utf-8")):
                problems.append((page.name, target))
    assert not problems


def test_pages_load_nothing_from_elsewhere(site):
    loaded = re.compile(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(https?:[^"]+)"')
    assert not [url for page in site.rglob("*.html") for url in loaded.findall(page.read_text())]


def test_sources_that_are_no_pages_stay_out(site):
    kept = {path.suffix for path in site.rglob("*")}
    assert not kept & {".py", ".toml", ".md"}
    assert "make lint" in (site / "development.html").read_text("utf-8")


LINKS = ("nowhere.md", "algorithm.md#no-such-section")


@pytest.mark.parametrize("link", large_but(LINKS[1:], LINKS))
def test_a_broken_link_fails_the_build(copy, link):
    page = copy / "docs" / "concepts.md"
    before = page.read_text("utf-8")
    page.write_text(f"{before}\n[broken]({link})\n", "utf-8")
    try:
        assert build(copy).returncode != 0
    finally:
        page.write_text(before, "utf-8")
