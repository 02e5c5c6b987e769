from math import inf, log, sqrt

import numpy as np
import pytest

from engine.config.search import Posterior
from engine.search.agents import ThompsonChooser, UcbChooser
from engine.search.depth import depth_gamma, depth_weight


def test_ucb_tries_every_agent_before_it_compares():
    chooser = UcbChooser(("oak", "elm"))
    assert chooser.values() == {"oak": inf, "elm": inf}
    chooser.observe("oak", 1.0)
    assert chooser.choose(np.random.default_rng(0))[0] == "elm"
    chooser.observe("elm", 0.0)
    chooser.observe("elm", 0.0)
    expected = {"oak": 1 + sqrt(2 * log(3)), "elm": sqrt(2 * log(3) / 2)}
    assert chooser.values() == pytest.approx(expected)
    assert chooser.choose(np.random.default_rng(0))[0] == "oak"


def test_thompson_prefers_the_agent_that_scores():
    chooser = ThompsonChooser(("oak", "elm"), Posterior.BETA)
    for _ in range(20):
        chooser.observe("oak", 1.0)
        chooser.observe("elm", 0.0)
    rng = np.random.default_rng(1)
    assert all(chooser.choose(rng)[0] == "oak" for _ in range(100))


def test_the_depth_weight_falls_with_width_and_depth():
    assert depth_weight(depth=3, children=0, rho=0.95) == 1.0
    assert depth_weight(depth=0, children=2, rho=0.95) == pytest.approx(0.98**2)
    assert depth_gamma(depth=2, rho=0.95) == pytest.approx(0.98 * 0.95**2)
    weights = [depth_weight(depth, 3, 0.97) for depth in range(6)]
    assert weights == sorted(weights, reverse=True)
