"""Tests that hand-written pages name everything of their kind that there is."""

import re
import tomllib

import pytest

from tests.docs.pages import ROOT

ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
OF_DJANGO = {"management", "templatetags"}


def packages(room):
    return sorted(path.parent.name for path in (ROOT / room).glob("*/__init__.py"))


@pytest.mark.parametrize("room", ["engine", "webapp"])
def test_the_architecture_names_every_package(room):
    unnamed = [name for name in packages(room) if not re.search(rf"`{room}/{name}\b", ARCHITECTURE)]
    assert not set(unnamed) - OF_DJANGO


@pytest.mark.parametrize(
    ("room", "of_the_page"),
    [
        ("engine", r"From the top: (.*?)\. A new\s"),
        ("webapp", r"the apps in the\s+order (.*?)\.\n"),
    ],
)
def test_the_architecture_has_the_layers_that_are_checked(room, of_the_page):
    """Without those above the first one that the page names, and below the last."""
    sentence = re.search(of_the_page, ARCHITECTURE, re.DOTALL)[1]
    shown = [set(re.findall(r"`(\w+)`", part)) for part in sentence.split(";")]
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (contract,) = (one for one in linter["contracts"] if one.get("containers") == [room])
    layers = [set(layer.split(" | ")) - OF_DJANGO for layer in contract["layers"]]
    first, last = layers.index(shown[0]), layers.index(shown[-1])
    assert shown == layers[first : last + 1]
