"""Tests that the comparison of revisions reports a planted change, and nothing without one."""

import shutil

import pytest

from engine.recipes import load_recipe
from tests.helpers.compare_revisions import HERE, Revision, difference, left_out, search_case

CASE = search_case("sequential")
PLANTED = (
    "engine/search/posteriors.py",
    "a: float = 0.5, b: float = 0.5",
    "a: float = 0.6, b: float = 0.5",
)
"""A file, a text in it, and the replacement of that text: another prior."""


@pytest.fixture
def copy(tmp_path):
    """A checkout of the engine with the same files as this one."""
    root = tmp_path / "checkout"
    shutil.copytree(HERE / "engine", root / "engine", ignore=shutil.ignore_patterns("__pycache__"))
    return Revision("copy", root)


@pytest.mark.large
@pytest.mark.slow
def test_a_search_is_equal_until_the_other_revision_draws_differently(copy, tmp_path):
    here = Revision("here", HERE)
    assert difference(CASE, here, copy, tmp_path / "same") == ""
    file = copy.root / PLANTED[0]
    assert file.read_text().count(PLANTED[1]) == 1
    file.write_text(file.read_text().replace(*PLANTED[1:]))
    assert "figure" in difference(CASE, here, copy, tmp_path / "other")


@pytest.mark.parametrize(
    ("recipe", "reason"), [("mars2-8b", "the weights of Qwen/Qwen3-8B"), ("mars2", "")]
)
def test_a_recipe_is_left_out_for_a_reason(recipe, reason):
    assert left_out(load_recipe(recipe).model_dump(mode="json")).endswith(reason)
    assert bool(left_out(load_recipe(recipe).model_dump(mode="json"))) == bool(reason)
