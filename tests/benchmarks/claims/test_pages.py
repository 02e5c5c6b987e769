"""Tests of the pages of the claims and of the figures on them."""

from dataclasses import replace

import pytest

from benchmarks.claims.catalogue import BY_NAME, CLAIMS
from benchmarks.claims.cell import write_result
from benchmarks.claims.claim import Plan
from benchmarks.claims.measurement import evaluation_figures
from benchmarks.claims.record import claim_record
from docs.generate import science
from tests.benchmarks.claims.builders import OPEN, SHAPING, TEAM, result_of, write_arms


def test_a_claim_that_is_not_seen_is_written_as_not_seen(tmp_path):
    values = {"two-models": [0.50, 0.55, 0.60], "shaping-off": [0.40, 0.66, 0.50]}
    write_arms(tmp_path, SHAPING, values)
    pages = science.pages(tmp_path)
    page = pages["docs/science/shaping.md"]
    assert "## Not seen\n" in page
    assert "no difference seen, −0.030 (−0.331 to +0.271) over 3 seeds; a mean" in page
    assert "difference of 0.301 or more would have been seen" in page
    assert "**Too few seeds.** A comparison has 3 of the 10 seeds" in page
    assert "python -m benchmarks claims shaping --seeds 3\n" in page
    assert "All budgets that the claim holds equal are equal" in page
    assert "| Not seen, too few seeds | 3 |" in pages["docs/science/index.md"]
    assert "**Not measured yet.**" in pages["docs/science/team.md"]


def test_a_claim_that_is_seen_on_enough_seeds_is_not_marked(tmp_path):
    control = [0.5 + 0.01 * seed for seed in range(10)]
    off = [value - 0.1 - 0.001 * (n % 2) for n, value in enumerate(control)]
    write_arms(tmp_path, SHAPING, {"two-models": control, "shaping-off": off})
    pages = science.pages(tmp_path)
    assert "## Seen\n" in pages["docs/science/shaping.md"]
    assert "worse, −0.10" in pages["docs/science/shaping.md"]
    assert "Too few" not in pages["docs/science/shaping.md"]
    assert "| Seen | 10 |" in pages["docs/science/index.md"]


def test_the_opposite_of_a_claim_is_named(tmp_path):
    values = {"two-models": [0.50, 0.55, 0.60], "shaping-off": [0.60, 0.66, 0.70]}
    write_arms(tmp_path, SHAPING, values)
    assert (
        "## Not seen; for an arm the opposite is seen"
        in science.pages(tmp_path)["docs/science/shaping.md"]
    )


def test_a_difference_that_rounds_to_zero_has_no_minus(tmp_path):
    write_arms(tmp_path, SHAPING, {"two-models": [0.5, 0.6], "shaping-off": [0.4999, 0.5999]})
    assert "worse, +0.000 (+0.000 to +0.000)" in science.pages(tmp_path)["docs/science/shaping.md"]


def test_arms_with_one_seed_are_not_decided(tmp_path):
    values = {"two-models": [0.8, 0.8], "single-oak": [0.7, 0.9], "two-roles": [0.7]}
    write_arms(tmp_path, TEAM, values)
    pages = science.pages(tmp_path)
    page = pages["docs/science/team.md"]
    assert "- two-roles against two-models, Pass@1(tree): not decided, seeds in common: 1." in page
    assert "## Not seen\n" in page  # single-oak is no worse, so not all arms can be
    assert "A comparison has 0 to 2 of the 10 seeds" in page
    assert "| Not seen, too few seeds | 0 to 2 |" in pages["docs/science/index.md"]


def write_sizes(folder, tree):
    samples = [0.5 + 0.01 * seed for seed in range(10)]
    small = [one + tree + 0.01 * (n % 2) for n, one in enumerate(samples)]
    large = [one - 0.2 for one in samples]
    values = {"samples-8": samples, "tree-8": small, "samples-60": samples, "tree-60": large}
    write_arms(folder, OPEN, values)
    return science.pages(folder)["docs/science/underspecified.md"]


def test_larger_trees_are_shown_and_do_not_decide(tmp_path):
    page = write_sizes(tmp_path, tree=0.15)
    assert "## Seen\n" in page and "Too few" not in page
    assert "tree-60 against samples-60, Pass@1 of the selected answer: worse" in page
    assert page.count("It does not decide.") == 2


def test_figures_of_a_training_that_the_arms_share_have_no_difference(tmp_path):
    for arm in ("samples-8", "tree-8"):
        for seed in (1, 2):
            figures = {"training/first/right": 0.25, "tree/pass@1": 0.5, "samples/pass@1": 0.4}
            one = result_of(OPEN, arm, seed, figures=figures)
            write_result(tmp_path / "underspecified" / f"{arm}-{seed}.json", one)
    page = science.pages(tmp_path)["docs/science/underspecified.md"]
    assert page.count("| training: first attempts that are right | 0.250 ± 0.000 |") == 1
    assert page.count("| training: first attempts that are right |") == 1
    assert page.count("| Pass@1 of the selected answer |") == 2


@pytest.mark.parametrize(("tree", "said"), [(0.15, "reached"), (0.05, "missed")])
def test_the_page_says_whether_the_goal_is_reached(tree, said, tmp_path):
    page = write_sizes(tmp_path, tree)
    assert f"difference of at least +0.100, with an interval that excludes 0, is {said}." in page


def test_a_claim_on_starters_says_that_nothing_was_trained(tmp_path):
    claim = BY_NAME["tree-samples-starters"]
    write_arms(tmp_path, claim, {"samples-8": [0.5, 0.6], "tree-8": [0.5, 0.6]})
    page = science.pages(tmp_path)["docs/science/tree-samples-starters.md"]
    assert "| each cell | no training, and 100 problems to evaluate" in page


def test_unequal_budgets_are_on_the_page(tmp_path):
    values = {"two-models": [0.5, 0.6], "shaping-off": [0.5, 0.6]}
    write_arms(tmp_path, SHAPING, values, **{"shaping-off": {"learned_tokens": 20000}})
    page = science.pages(tmp_path)["docs/science/shaping.md"]
    assert "- shaping-off, seed 2: learned tokens: 20,000 and 30,000, 0.67 times" in page
    assert "All budgets that the claim" not in page


def test_results_of_other_settings_or_sizes_are_left_out_and_named(tmp_path):
    values = {"two-models": [0.5, 0.6], "shaping-off": [0.5, 0.6]}
    write_arms(tmp_path, SHAPING, values)
    old = replace(result_of(SHAPING, "shaping-off", 3), digest="0" * 64)
    write_result(tmp_path / "shaping" / "shaping-off-3.json", old)
    small = result_of(SHAPING, "shaping-off", 4, Plan(steps=2))
    write_result(tmp_path / "shaping" / "shaping-off-4.json", small)
    record = claim_record(SHAPING, tmp_path)
    assert record.left_out == ["shaping-off-3", "shaping-off-4"]
    assert sorted(record.results["shaping-off"]) == [1, 2]
    page = science.pages(tmp_path)["docs/science/shaping.md"]
    assert "results of other settings or sizes: shaping-off-3, shaping-off-4" in page


def test_the_page_remakes_cells_of_another_size(tmp_path):
    values = {"two-models": [0.5, 0.6], "shaping-off": [0.5, 0.6]}
    write_arms(tmp_path, SHAPING, values, Plan(steps=5))
    page = science.pages(tmp_path)["docs/science/shaping.md"]
    assert "benchmarks claims shaping --seeds 2 --steps 5\n" in page


def test_stored_results_are_those_of_the_current_claims():
    for claim in CLAIMS:
        assert not claim_record(claim, science.FOLDER).left_out, claim.name


def test_figures_by_readings_are_means_over_the_problems_with_so_many():
    rows = [("underspecified-1-7-3-4", 1.0, 0.0), ("underspecified-1-7-5-4", 0.0, 0.0),
            ("underspecified-1-7-9-2", 1.0, 1.0), ("generated-1-7-4", 0.0, 1.0)]  # fmt: skip
    problems = [
        {"id": name, "values": {"tree/pass@1": tree, "samples/pass@1": samples}}
        for name, tree, samples in rows
    ]
    figures = evaluation_figures({"figures": {"pass@1/ash": {"value": 0.5}}, "problems": problems})
    assert figures["tree/pass@1/4-readings"] == 0.5 and figures["samples/pass@1/4-readings"] == 0.0
    assert (
        figures["tree/pass@1/2-readings"] == 1.0
        and len([k for k in figures if "readings" in k]) == 4
    )
