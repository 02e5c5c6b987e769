"""Tests of the odds of a repair, of the points made of them, and of their picture."""

import json
import math
import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks.claims.catalogue import BY_NAME
from benchmarks.claims.cell import Cell, write_result
from benchmarks.claims.measurement import evaluation_figures
from benchmarks.claims.odds import Counts, attempt_counts, ratio
from benchmarks.claims.runner import run_cells
from benchmarks.claims.stages import Workplace
from benchmarks.claims.tree_pays import Missing, points
from docs.generate import scatter, science
from docs.generate.scatter import Mark
from tests.benchmarks.claims.builders import OPEN, result_of

ONE, TWO = Counts(10, 5, 10, 5, 2.5), Counts(10, 5, 10, 8, 4)
"""Chances of a repair of 0.5 and 0.8, of a fresh answer of 0.5."""


def odds(counts):
    return ratio(counts, lambda one: one.odds)


def test_the_odds_are_of_the_sums_and_their_interval_is_the_jackknifes():
    both = odds([ONE, TWO])
    factor = math.exp(12.706204736 * 0.5 * math.log(1.6))  # t(1); without one 1.6, the other 1.0
    assert both.value == pytest.approx(1.3)
    assert (both.low, both.high) == pytest.approx((1.3 / factor, 1.3 * factor), rel=1e-6)
    assert ratio([ONE, TWO], lambda one: one.odds_on_same).value == pytest.approx(2)


def test_odds_that_are_not_defined_have_no_value_and_those_of_one_cell_no_interval():
    assert odds([]) is None and odds([Counts(8, 0, 4, 1, 0)]) is None
    assert odds([Counts(8, 4, 0, 0, 0)]) is None
    never = Counts(8, 4, 6, 0, 2)
    assert odds([never, never]).value == 0 and odds([never, never]).low is None
    assert odds([ONE]).value == pytest.approx(1) and odds([ONE]).high is None


def problem(name, fresh, repairs, samples, **values):
    counts = {"fresh": fresh, "repairs": repairs, "samples": samples}
    return {"id": name, "content": name, "values": values, "attempts": counts}


def test_repairs_are_compared_with_fresh_answers_to_the_same_problems():
    rows = [problem("underspecified-1-7-3-4", [2, 1], [6, 3], [10, 4]),
            problem("underspecified-1-7-5-2", [8, 8], [0, 0], [10, 9])]  # fmt: skip
    assert attempt_counts(rows) == {
        "fresh": 10, "fresh-right": 9, "repairs": 6, "repairs-right": 3, "repairs-expected": 2.4,
    }  # fmt: skip
    figures = evaluation_figures({"figures": {"pass@1/ash": {"value": 0.5}}, "problems": rows})
    assert figures["attempts/repairs-expected"] == 2.4
    assert figures["attempts/repairs/4-readings"] == 6
    assert figures["attempts/fresh-right/2-readings"] == 8
    assert attempt_counts([{"id": "x", "values": {}}]) == {}


def counted(fresh_right, repairs_right, readings=""):
    names = ("fresh", "fresh-right", "repairs", "repairs-right", "repairs-expected")
    values = (50, fresh_right, 40, repairs_right, 10.0)
    return {f"attempts/{name}{readings}": value for name, value in zip(names, values, strict=True)}


def write_points(folder, counts=True, gains=(0.1, 0.12, 0.14)):
    for seed, gain in enumerate(gains, start=1):
        figures = {"samples/pass@1": 0.5, "tree/pass@1": 0.5 + gain}
        figures |= {"samples/pass@1/6-readings": 0.3, "tree/pass@1/6-readings": 0.3 + 2 * gain}
        if counts:
            figures |= counted(10, 16 + seed) | counted(5, 12, "/6-readings")
        for arm in ("samples-8", "tree-8"):
            one = result_of(OPEN, arm, seed, figures=figures)
            write_result(folder / "underspecified" / f"{arm}-{seed}.json", one)


def test_a_family_and_each_number_of_readings_is_a_point(tmp_path):
    write_points(tmp_path)
    (whole, six), missing = points(tmp_path, tmp_path / "none")
    assert not missing and (whole.readings, six.readings) == (None, 6)
    assert (whole.nodes, whole.units, whole.trained) == (8, 3, True)
    assert whole.odds.value == pytest.approx((54 / 120) / (30 / 150))
    assert whole.gain.difference == pytest.approx(0.12)
    assert six.gain.difference == pytest.approx(0.24)
    write_points(tmp_path / "two", gains=(0.1, 0.14))
    assert points(tmp_path / "two", tmp_path / "none") == ([], [Missing("underspecified", 8)])


def test_results_without_counts_are_named_and_measured_again(tmp_path):
    write_points(tmp_path, counts=False)
    assert points(tmp_path, tmp_path) == ([], [Missing("underspecified", 8)])
    page = science.pages(tmp_path)["docs/science/when-a-tree-pays.md"]
    assert "or in too few seeds: [underspecified](underspecified.md) (8 nodes)" in page
    cell, lines = Cell(OPEN, OPEN.arm("tree-8"), 1, OPEN.plan), []
    done = run_cells([cell], tmp_path, Workplace(tmp_path / "w", minutes=1e-5), lines.append)
    assert "underspecified/tree-8-1: its result has no attempts/fresh; measuring it" in lines[0]
    assert done.failed and not done.present and not done.copied
    write_points(tmp_path)
    assert run_cells([cell], tmp_path, Workplace(tmp_path), lines.append).present == [cell.name]


def test_a_report_of_another_model_is_a_point_over_its_problems(tmp_path):
    rows = [problem(str(n), [4, n % 2], [12, n % 3 == 0], [20, 2],
                    **{"samples/pass@1": 1.0, "tree/pass@1": float(n > 2)})
            for n in range(6)]  # fmt: skip
    report = {
        "kind": "evaluation", "version": 1, "problems": rows, "figures": {},
        "dataset": {"path": "data/mbpp-test.jsonl"}, "settings": {"evaluation": {"tree_nodes": 16}},
    }  # fmt: skip
    reports = tmp_path / "evaluations"
    reports.mkdir()
    file = reports / "smollm2.json"
    file.write_text(json.dumps(report))
    (one,), _ = points(tmp_path, reports)
    assert (one.team, one.problems, one.nodes, one.unit) == ("smollm2", "mbpp-test.jsonl", 16,
                                                            "problems")  # fmt: skip
    assert one.odds.value == pytest.approx((2 / 72) / (3 / 24))
    assert one.odds_on_same.value == pytest.approx(2 / 7.2)
    assert one.gain.difference == pytest.approx(-0.5)
    page = science.pages(tmp_path / "results")["docs/science/when-a-tree-pays.md"]
    assert "a repair is right in 2.8% and a fresh answer in 12.5%, 0.22 times as often" in page
    del rows[0]["attempts"]
    file.write_text(json.dumps(report))
    with pytest.raises(ValueError, match="have no attempts; evaluate again, with a search"):
        points(tmp_path, reports)


def test_the_page_has_a_row_and_the_picture_a_point_for_each(tmp_path):
    write_points(tmp_path)
    pages = science.pages(tmp_path)
    page = pages["docs/science/when-a-tree-pays.md"]
    assert "above 0 for 2 of 2 points with x above 1, and for 0 of 0 others" in page
    assert "| 0.200 | 0.450 | 2.25 (" in page and "| +0.120 (+0.070 to +0.170) |" in page
    assert "[ash and rowan, trained](underspecified.md) | 6 readings | 8 | 3 seeds |" in page
    picture = ElementTree.fromstring(pages["docs/science/when-a-tree-pays.svg"])
    texts = [one.text for one in picture.iter() if one.tag.endswith("text")]
    assert "6" in texts and "underspecified problems" in texts


def test_points_lie_where_their_axes_say():
    def mark(x, y, **more):
        return Mark(x, None, None, y, y - 0.1, y + 0.1, "a", is_filled=True, **more)

    drawn = scatter.drawing([mark(1.0, 0.0), mark(4.0, 0.2), mark(0.0, -0.2)], "t", "x", "y",
                            ("hollow", "full"))  # fmt: skip
    circles = [one for one in ElementTree.fromstring(drawn).iter() if one.tag.endswith("circle")]
    unit, four, never = (
        (float(one.get("cx")), float(one.get("cy"))) for one in circles[3:]
    )  # after the legend's
    assert never[0] == scatter.LEFT and four[0] == scatter.WIDTH - scatter.RIGHT
    assert unit[0] - never[0] == pytest.approx(2 * (four[0] - unit[0]), abs=0.2)  # 1/16, 1 and 4
    assert never[1] > unit[1] > four[1]


def test_every_comparison_of_trees_needs_the_counts():
    needed = [one for one in BY_NAME.values() if "attempts/fresh" in one.needs]
    assert len(needed) == 6 and all(one.control == "samples-8" for one in needed)
