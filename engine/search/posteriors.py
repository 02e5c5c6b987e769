"""Thompson posteriors over a reward in [0, 1], kept as running sums.

Invariant: `observe` and `draw` cost O(1); no observation is stored. The parameters after any
sequence of observations equal those of the batch formulas on the whole list.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import sqrt
from typing import Literal, Protocol, TypeVar

import numpy as np

from engine.config.thompson import NodeChoice, Posterior

Arm = TypeVar("Arm", bound=Hashable)
Family = Posterior | Literal[NodeChoice.UNIFORM]
"""A family of posteriors, or the rule `uniform`, whose draws disregard all rewards."""
DIGITS = 4
"""Decimals of the numbers in a record of draws: a large tree keeps and emits very many of them."""


class ThompsonPosterior(Protocol):
    """Interface of a posterior of any family."""

    def observe(self, reward: float) -> None:
        """Takes in one reward, from 0 to 1."""
        ...

    def draw(self, rng: np.random.Generator) -> float:
        """Returns one sample of the mean reward."""
        ...

    def mean(self) -> float:
        """Returns the expected mean reward."""
        ...

    def parameters(self) -> dict[str, float]:
        """Returns the parameters by name, as docs/algorithm.md, section 2, has them."""
        ...

    def recorded(self) -> Mapping[str, float]:
        """Returns the parameters as a record of draws holds them, to `DIGITS` decimals; the same
        mapping object until the next observation, which must not be modified."""
        ...

    def key(self) -> tuple[float, ...]:
        """Returns the parameters of its draws; posteriors with equal keys have the same
        distribution."""
        ...

    @staticmethod
    def draw_each(keys_PN: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Returns draws_N: one for each key, the same numbers as successive calls of `draw`."""
        ...

    @staticmethod
    def share_above(keys_PN: np.ndarray, value: float) -> np.ndarray:
        """Returns shares_N: probability of a draw above the value."""
        ...

    @staticmethod
    def value_below(keys_PN: np.ndarray, shares_N: np.ndarray) -> np.ndarray:
        """Returns values_N that a draw exceeds with this probability; inverse of `share_above`."""
        ...


class BetaPosterior:
    """Beta(a, b) with Jeffreys' prior by default; a += r, b += 1 - r.

    Source: docs/algorithm.md, section 2.

    A fractional reward counts as that share of a success (Agrawal & Goyal 2012 draw a
    Bernoulli instead; AB-MCTS-A adds the fraction itself, and so does Grove).
    """

    __slots__ = ("_recorded", "a", "b")

    def __init__(self, a: float = 0.5, b: float = 0.5):
        self.a = float(a)
        self.b = float(b)
        self._recorded: Mapping[str, float] | None = None

    def observe(self, reward: float) -> None:
        if not 0.0 <= reward <= 1.0:
            raise ValueError(f"reward = {reward!r}: a Beta posterior takes values from 0 to 1")
        self.a += reward
        self.b += 1.0 - reward
        self._recorded = None

    def draw(self, rng: np.random.Generator) -> float:
        if self.a <= 0.0 or self.b <= 0.0:  # a prior mean of 0 or 1: all mass at that end
            return self.mean()
        return float(rng.beta(self.a, self.b))

    def mean(self) -> float:
        return self.a / (self.a + self.b)

    def parameters(self) -> dict[str, float]:
        return {"a": self.a, "b": self.b}

    def recorded(self) -> Mapping[str, float]:
        if self._recorded is None:
            self._recorded = rounded(self.parameters())
        return self._recorded

    def key(self) -> tuple[float, ...]:
        return self.a, self.b

    @staticmethod
    def draw_each(keys_PN: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.beta(keys_PN[0], keys_PN[1])

    @staticmethod
    def share_above(keys_PN: np.ndarray, value: float) -> np.ndarray:
        from scipy.special import betaincc  # for wide pools only: its import is slow

        return betaincc(keys_PN[0], keys_PN[1], max(0.0, value))

    @staticmethod
    def value_below(keys_PN: np.ndarray, shares_N: np.ndarray) -> np.ndarray:
        from scipy.special import betainccinv

        return betainccinv(keys_PN[0], keys_PN[1], shares_N)


class FlatPosterior(BetaPosterior):
    """Beta(1, 1), the uniform distribution on [0, 1], whatever is observed: the control of
    Thompson sampling, which has the same arms and learns nothing."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(1.0, 1.0)

    def observe(self, reward: float) -> None:
        if not 0.0 <= reward <= 1.0:
            raise ValueError(f"reward = {reward!r}: give a value from 0 to 1")


class GaussianPosterior:
    """Normal with scaled inverse chi² variance.

    Source: docs/algorithm.md, section 2; Murphy 2023, 3.4.3.3.

    Mean and sum of squares are updated by Welford's method, so long sequences of nearly equal
    rewards lose no digits.
    """

    __slots__ = (
        "_average", "_count", "_kappa", "_m", "_nu", "_recorded", "_squares", "_t_parameters",
        "_tau_square",
    )  # fmt: skip

    def __init__(
        self, m: float = 0.0, kappa: float = 1.0, nu: float = 1.0, tau_square: float = 0.1
    ):
        self._m = float(m)
        self._kappa = float(kappa)
        self._nu = float(nu)
        self._tau_square = float(tau_square)
        self._count = 0
        self._average = 0.0
        self._squares = 0.0
        self._clear_cache()

    def observe(self, reward: float) -> None:
        self._count += 1
        before = reward - self._average
        self._average += before / self._count
        self._squares += before * (reward - self._average)
        self._clear_cache()

    def draw(self, rng: np.random.Generator) -> float:
        """Draws mu ~ N(m, sigma²/kappa), sigma² ~ InvGamma(nu/2, nu tau²/2) integrated out.

        The marginal of mu is Student's t with nu degrees of freedom: one draw instead of two,
        and no division by a vanishing gamma variate.
        """
        m, scale, nu = self.key()
        return m + scale * float(rng.standard_t(nu))

    def mean(self) -> float:
        kappa = self._kappa + self._count
        return (self._kappa * self._m + self._count * self._average) / kappa

    def parameters(self) -> dict[str, float]:
        m, kappa, nu, tau_square = self._parameters()
        return {"m": m, "kappa": kappa, "nu": nu, "tau_square": tau_square}

    def recorded(self) -> Mapping[str, float]:
        if self._recorded is None:
            self._recorded = rounded(self.parameters())
        return self._recorded

    def key(self) -> tuple[float, float, float]:
        """Returns mean, scale and degrees of freedom of Student's t."""
        if self._t_parameters is None:
            m, kappa, nu, tau_square = self._parameters()
            self._t_parameters = m, sqrt(tau_square / kappa), nu
        return self._t_parameters

    @staticmethod
    def draw_each(keys_PN: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return keys_PN[0] + keys_PN[1] * rng.standard_t(keys_PN[2])

    @staticmethod
    def share_above(keys_PN: np.ndarray, value: float) -> np.ndarray:
        from scipy.special import stdtr

        return stdtr(keys_PN[2], (keys_PN[0] - value) / keys_PN[1])

    @staticmethod
    def value_below(keys_PN: np.ndarray, shares_N: np.ndarray) -> np.ndarray:
        from scipy.special import stdtrit

        return keys_PN[0] - keys_PN[1] * stdtrit(keys_PN[2], shares_N)

    def _clear_cache(self) -> None:
        """Clears the values cached from the sums."""
        self._t_parameters: tuple[float, float, float] | None = None
        self._recorded: Mapping[str, float] | None = None

    def _parameters(self) -> tuple[float, float, float, float]:
        n = self._count
        kappa = self._kappa + n
        nu = self._nu + n
        shift = n * self._kappa * (self._m - self._average) ** 2 / kappa
        tau_square = (self._nu * self._tau_square + self._squares + shift) / nu
        return self.mean(), kappa, nu, tau_square


def rounded(parameters: Mapping[str, float]) -> dict[str, float]:
    """Returns parameters, or draws, as a record holds them."""
    return {name: round(value, DIGITS) for name, value in parameters.items()}


def posterior_class(family: Family) -> type[ThompsonPosterior]:
    """Returns the class of a family, for draws of many posteriors at once."""
    if family is NodeChoice.UNIFORM:
        return FlatPosterior
    return GaussianPosterior if family is Posterior.GAUSSIAN else BetaPosterior


def make_posterior(family: Family, reward_average_prior: float | None = None) -> ThompsonPosterior:
    """Returns a posterior before any observation.

    `reward_average_prior` moves the prior's mean: Beta(p, 1 - p), or m = p; `uniform` has none.

    Raises:
        ValueError: a prior mean outside [0, 1] for the Beta family.
    """
    if family is NodeChoice.UNIFORM:
        return FlatPosterior()
    if family is Posterior.GAUSSIAN:
        return (
            GaussianPosterior()
            if reward_average_prior is None
            else GaussianPosterior(m=reward_average_prior)
        )
    if reward_average_prior is None:
        return BetaPosterior()
    if not 0.0 <= reward_average_prior <= 1.0:
        raise ValueError(
            f"reward_average_prior = {reward_average_prior!r}: give a value from 0 to 1"
        )
    return BetaPosterior(reward_average_prior, 1.0 - reward_average_prior)


def thompson(
    posteriors: Mapping[Arm, ThompsonPosterior], rng: np.random.Generator
) -> tuple[Arm, dict[Arm, float]]:
    """Draws once per arm, in the mapping's order; returns the arm of the largest, and all draws."""
    draws = {arm: posterior.draw(rng) for arm, posterior in posteriors.items()}
    return max(draws, key=draws.__getitem__), draws
