"""Tests of the page about sockets: its examples run."""

import re

import pytest

from tests.docs.pages import ROOT

EXAMPLES = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/sockets.md").read_text(), re.M | re.S)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_example_holds_what_it_asserts(example):
    assert "\nassert " in example
    exec(compile(example, "docs/sockets.md", "exec"), {"__name__": "example"})


def test_every_kind_has_an_example():
    assert len(EXAMPLES) >= 5
