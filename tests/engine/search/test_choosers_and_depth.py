from math import inf, log, sqrt

import numpy as np
import pytest

from engine.config.errors import ConfigError
from engine.config.thompson import Posterior
from engine.recipes import load_recipe
from engine.search.agents import ThompsonChooser, UcbChooser
from engine.search.depth import depth_gamma, depth_weight
from engine.search.posteriors import make_posterior


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


def test_depth_guidance_on_gaussian_draws_is_refused():
    """A negative draw times a factor below 1 is larger: the wider a node, the more it would widen.
    The prior has no lower end to measure from."""
    rng = np.random.default_rng(0)
    draws = [make_posterior(Posterior.GAUSSIAN).draw(rng) for _ in range(100)]
    assert sum(draw * depth_weight(0, 3, 0.97) > draw for draw in draws) > 30
    for settings in ({"search.posterior": "beta"}, {"search.rho": None}):
        load_recipe("demo", {"search.rho": 0.97, "search.posterior": "gaussian"} | settings)
    with pytest.raises(ConfigError) as caught:
        load_recipe("demo", {"search.rho": 0.97, "search.posterior": "gaussian"})
    (problem,) = caught.value.problems
    assert problem["path"] == "search"
    assert "rho = 0.97 with posterior = gaussian" in problem["reason"]
    assert "leave rho out, or set posterior to beta" in problem["reason"]
