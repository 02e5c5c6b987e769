"""Tests of an evaluation's figures by family of problem."""

from msgspec import UNSET

from engine.evaluation.families import by_family
from engine.problems.generator import GeneratedProblems, Split


def test_each_family_has_the_figures_of_its_problems():
    problems = GeneratedProblems(5, 0.5).first(Split.TEST, 30)
    is_open = [problem.id.startswith("underspecified") for problem in problems]
    assert 5 < sum(is_open) < 25
    oak = [0.25 if one else 1.0 for one in is_open]
    oak[0] = None
    tree = [float(one) for one in is_open]
    families = by_family(problems, {"oak": oak}, {"tree/pass@1": tree})
    assert {name: family.agents["oak"] for name, family in families.items()} == {
        "stated": 1.0, "underspecified": 0.25,
    }  # fmt: skip
    assert families["underspecified"].problems == sum(is_open)
    assert (families["stated"].tree, families["underspecified"].tree) == (0.0, 1.0)
    assert families["stated"].samples is None


def test_one_family_is_not_reported():
    problems = GeneratedProblems(5).first(Split.TEST, 3)
    assert by_family(problems, {"oak": [1.0, 1.0, 1.0]}, {}) is UNSET
