"""Tests of the figures of an advantage: each agent's mean over the nodes of a step."""

from types import SimpleNamespace

import numpy as np

from engine.config.methods import figures_of
from engine.credit.assign import Credit
from engine.training.telemetry import credit_figures
from tests.helpers.plugin_packages import EXAMPLE, installed


def a_tree(*agents):
    """A tree whose nodes 1, 2, ... these agents wrote, closed in another order."""
    written = {node: SimpleNamespace(agent=name) for node, name in enumerate(agents, 1)}
    return SimpleNamespace(written=dict(reversed(written.items())))


def credited(**figures):
    count = len(next(iter(figures.values()), []))
    columns = {name: np.array(values) for name, values in figures.items()}
    return Credit(np.zeros(count), np.zeros(count), filtered=False, figures=columns)


def test_a_step_reports_each_agent_s_mean_of_the_advantage_s_figures():
    trees = [a_tree("oak", "fern", "oak"), a_tree("fern", "oak"), a_tree("elm")]
    credits = [
        credited(baseline=[1.0, 2.0, np.nan]),
        credited(baseline=[4.0, 0.0]),
        credited(baseline=[np.nan]),
    ]
    assert credit_figures(trees, credits, "smoothed") == {
        "smoothed.baseline.fern": 3.0, "smoothed.baseline.oak": 0.5,
    }  # fmt: skip
    assert credit_figures(trees[:1], [credited()], "mars2") == {}


def test_they_are_charts_by_the_name_under_which_they_are_logged():
    with installed(EXAMPLE):
        figures = figures_of({"credit": {"advantage": "smoothed"}})
    assert figures == {
        "smoothed.baseline": {
            "title": "Moving average of the rewards", "unit": "reward", "section": "Learning",
        },
    }  # fmt: skip
