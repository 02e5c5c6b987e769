"""Tests of the blocks of a report: what they say, what they refuse, and how they are drawn."""

import pytest

from webapp.markdown import Block, render_around
from webapp.reports.directives import BlockError, Kind, parse
from webapp.reports.drawing import drawing_of
from webapp.reports.drawing.charts import ticks
from webapp.reports.drawing.trees import layout
from webapp.telemetry.series.reads import Axis

RUN = "5f0c0b6e-2a5e-4f0e-9d6e-0d8d3b1f4a77"
OTHER = "0b8f6ce2-6f0d-4dd0-8a0e-3a6cf7a7a1c1"


def block(kind: str, *lines: str) -> Block:
    return Block(kind, lines, 10)


def test_text_and_blocks_keep_their_order_and_lines():
    text = (
        f"# One\n\n```grove chart\nrun: {RUN}\n```\n[link][x] and <b>\n\n> ```grove tree\n> ```\n\n"
    )
    before, found, after = render_around(text + "[x]: https://example.com", "grove")
    assert before == "<h3>One</h3>\n" and found == Block("chart", (f"run: {RUN}",), 3)
    assert 'href="https://example.com"' in after and "&lt;b&gt;" in after
    assert "<blockquote>" in after and "grove" not in after, "a quoted block is code"
    assert render_around("```groves\na\n```", "grove") == ("<pre><code>a\n</code></pre>\n",)


def test_a_chart_has_runs_by_id_or_address_and_series():
    address = f"https://grove.example/runs/{OTHER}/#tree=3"
    lines = (f"run: {RUN}", f"run: {address}", "series: reward, solved", "series: kl", "x: tokens")
    chart = parse(block("chart", *lines, "title: A: b", "frozen: night"))
    assert (chart.kind, list(map(str, chart.runs))) == (Kind.CHART, [RUN, OTHER])
    assert (chart.series, chart.axis) == (("reward", "solved", "kl"), Axis.TOKENS)
    assert (chart.title, chart.frozen) == ("A: b", "night")
    assert chart.error("series", "kl", "?").line == 14 and chart.error("run", OTHER, "?").line == 12


def test_another_text_after_frozen_is_another_figure_and_another_title_is_not():
    first, renamed, again = (
        parse(block("tree", f"run: {RUN}", "tree: 7", f"title: {title}", f"frozen: {frozen}"))
        for title, frozen in (("A", "1"), ("B", "1"), ("A", "2"))
    )
    assert first.key == renamed.key != again.key


@pytest.mark.parametrize(
    ("lines", "line", "value", "remedy"),
    [
        (("pie", f"run: {RUN}"), 10, "pie", "write one of chart, tree, runs"),
        (("chart", "run: 7"), 11, "7", "give the id or the address of a run"),
        (("chart", f"run: {RUN}", "", f"run: {RUN}"), 13, RUN, "name each run once"),
        (("chart", f"run: {RUN}", "x: steps"), 12, "steps", "one of step, time, tokens, nodes"),
        (("chart", f"run: {RUN}", "colour: red"), 12, "red", "a chart has run, series, x"),
        (("chart", f"run: {RUN}", "reward"), 12, "reward", "write NAME: VALUE"),
        (("chart", f"run: {RUN}"), 10, "", "add a line series: NAME"),
        (("tree", f"run: {RUN}", "tree: -1"), 12, "-1", "give the number of a tree"),
        (("runs", "columns: state, price"), 11, "price", "give some of state, progress"),
        (("runs", f"run: {RUN}", "tag: best"), 11, RUN, "not both"),
        (("runs", "title: " + "a" * 201), 11, "a" * 40 + "…", "at most 200 characters"),
    ],
)
def test_a_wrong_line_is_named_with_its_value_and_the_remedy(lines, line, value, remedy):
    with pytest.raises(BlockError) as refusal:
        parse(block(*lines))
    error = refusal.value
    assert (error.line, error.value) == (line, value) and remedy in error.remedy


def test_a_tree_is_laid_out_with_parents_above_the_middle_of_their_children():
    edges = [(1, 0), (2, 0), (3, 1), (4, 1), (5, 9)]
    positions = layout([{"id": node, "parent": parent} for node, parent in edges])
    assert positions == {0: (1.75, 0), 1: (0.5, 1), 3: (0, 2), 4: (1, 2), 2: (2, 1), 5: (3, 1)}


def test_ticks_are_round_and_any_finite_values_can_be_drawn():
    assert ticks(0.0, 1.0) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(-37.0, 512.0) == [0, 200, 400]
    for values in ([0.0, 5e-324], [-1.7e308, 1.7e308], [3.0, 3.0], [1e15, 1e15 + 1]):
        line = {"label": "a", "x": [1.0, 2.0], "mean": values, "least": values, "most": values}
        data = {"axis": "step", "lines": [line], "left_out": 0, "runs": []}
        drawn = drawing_of({"kind": "chart", **data})
        assert "nan" not in drawn.lines[0].mean and drawn.y_ticks, values
