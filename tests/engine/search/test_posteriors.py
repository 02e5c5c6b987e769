import numpy as np
import pytest

from engine.config.thompson import Posterior
from engine.search.posteriors import BetaPosterior, GaussianPosterior, make_posterior, thompson


def batch_gaussian(rewards, m=0.0, kappa=1.0, nu=1.0, tau_square=0.1):
    """The formulas of docs/algorithm.md, section 2, on the whole list at once."""
    x, n = np.asarray(rewards, dtype=np.float64), len(rewards)
    average = x.mean() if n else 0.0
    squares = ((x - average) ** 2).sum()
    shift = n * kappa * (m - average) ** 2 / (kappa + n)
    return {
        "m": (kappa * m + n * average) / (kappa + n),
        "kappa": kappa + n,
        "nu": nu + n,
        "tau_square": (nu * tau_square + squares + shift) / (nu + n),
    }


@pytest.mark.parametrize("seed", range(20))
def test_running_sums_equal_the_batch_formulas(seed):
    rng = np.random.default_rng(seed)
    rewards = rng.random(rng.integers(0, 300))
    prior = {"m": rng.random(), "kappa": 0.5 + rng.random(), "nu": 1 + rng.random()}
    gaussian, beta = GaussianPosterior(**prior), BetaPosterior(0.7, 1.3)
    for reward in rewards:
        gaussian.observe(reward)
        beta.observe(reward)
    assert gaussian.parameters() == pytest.approx(batch_gaussian(rewards, **prior), abs=1e-12)
    assert beta.parameters() == pytest.approx(
        {"a": 0.7 + rewards.sum(), "b": 1.3 + (1 - rewards).sum()}, abs=1e-9
    )


def test_a_long_run_of_nearly_equal_rewards_loses_no_digits():
    rewards = 0.9 + 1e-7 * np.random.default_rng(0).random(20_000)
    posterior = GaussianPosterior(m=0.9, nu=1e-9, tau_square=1e-30)
    for reward in rewards:
        posterior.observe(float(reward))
    expected = ((rewards - rewards.mean()) ** 2).sum()
    result = posterior.parameters()
    shift = 20_000 * (0.9 - rewards.mean()) ** 2 / 20_001
    assert result["tau_square"] * result["nu"] == pytest.approx(expected + shift, rel=1e-6)


@pytest.mark.parametrize("family", list(Posterior))
def test_draws_have_the_posteriors_mean_and_spread(family):
    posterior, rng = make_posterior(family), np.random.default_rng(1)
    for reward in (1, 1, 0, 1, 0, 1, 1, 0):
        posterior.observe(reward)
    draws = np.array([posterior.draw(rng) for _ in range(20_000)])
    known = posterior.parameters()
    if family is Posterior.BETA:
        a, b = known["a"], known["b"]
        variance = a * b / ((a + b) ** 2 * (a + b + 1))
    else:  # Student's t with nu degrees of freedom
        nu = known["nu"]
        variance = known["tau_square"] / known["kappa"] * nu / (nu - 2)
    assert draws.mean() == pytest.approx(posterior.mean(), abs=0.006)
    assert draws.var() == pytest.approx(variance, rel=0.08)


def test_the_gaussian_draw_follows_the_two_step_definition():
    posterior, rng = GaussianPosterior(), np.random.default_rng(2)
    for reward in (1, 0, 1):
        posterior.observe(reward)
    m, kappa, nu, tau_square = posterior.parameters().values()
    sigma_square = nu * tau_square / 2 / rng.gamma(nu / 2, size=40_000)
    two_steps = rng.normal(m, np.sqrt(sigma_square / kappa))
    direct = np.array([posterior.draw(rng) for _ in range(40_000)])
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    assert np.quantile(direct, levels) == pytest.approx(np.quantile(two_steps, levels), abs=0.02)


def test_a_beta_posterior_refuses_rewards_that_are_no_share():
    for reward in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="from 0 to 1"):
            BetaPosterior().observe(reward)


def test_a_prior_mean_is_set_without_more_certainty():
    assert make_posterior(Posterior.BETA, 0.7).mean() == pytest.approx(0.7)
    assert make_posterior(Posterior.GAUSSIAN, 0.7).parameters()["kappa"] == 1.0
    assert make_posterior(Posterior.BETA, 1.0).draw(np.random.default_rng(0)) == 1.0
    with pytest.raises(ValueError, match=r"reward_average_prior = 1\.5"):
        make_posterior(Posterior.BETA, 1.5)


def test_thompson_returns_the_arm_with_the_largest_draw():
    arms = {name: make_posterior(Posterior.BETA) for name in "abc"}
    rng = np.random.default_rng(3)
    for _ in range(50):
        winner, draws = thompson(arms, rng)
        assert draws[winner] == max(draws.values()) and list(draws) == ["a", "b", "c"]
