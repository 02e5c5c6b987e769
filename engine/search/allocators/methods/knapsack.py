"""Knapsack RL: more nodes for problems whose answers are likely to differ in score.

Source: Unlocking Exploration via Optimizing Budget Allocation, arXiv 2509.25849, by two published
readings and a reimplementation. With p the pass rate of a problem at its last visit, N answers to
it are worth

    value(N, p) = [1 - p^N - (1-p)^N] p (1-p)^2

the chance that they are neither all right nor all wrong, times a gain that peaks at p = 1/3. The
sum of values is maximised under sum N <= budget, low <= N <= high. One more answer is worth

    value(N+1, p) - value(N, p) = [p^N (1-p) + (1-p)^N p] p (1-p)^2

which falls with N, so to give one answer at a time to the problem that gains most is optimal. The
gain is computed as written: differences of values cancel to 0. Ours: equal gains go to the first
problem; nodes that nobody gains from go to the problems of rate 0, the one with fewest nodes first,
and are left unspent beyond that; the first steps are uniform, as rates say little yet. More
than one pass over the problems is needed: the default recipes stream problems that each occur once,
so a recipe with this allocator sets `problems.train` small.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from engine.config.base import Settings, Whole
from engine.config.golden_kind import Case, Kind
from engine.config.misfits import Misfit, rarely_seen
from engine.config.search import SearchConfig
from engine.memory.pass_rates import PassRates
from engine.search.allocators.methods import uniform

if TYPE_CHECKING:
    from engine.config.schema import RunConfig


class Options(Settings):
    """Knapsack RL."""

    low: int = Field(2, ge=1, le=5000)
    """Fewest nodes of a tree."""
    high: int = Field(32, ge=1, le=5000)
    """Most nodes of a tree."""
    warmup_steps: Whole = Field(5, ge=0)
    """First steps, in which every tree has `nodes_per_tree` nodes, because pass rates say little
    yet."""

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> Options:
        if self.low > self.high:
            raise ValueError(f"low = {self.low} is more than high = {self.high}; lower it")
        return self


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Refuses bounds that no budget meets; warns of nodes that none of the trees may have, and
    where hardly anything is known of a problem."""
    options, nodes = config.search.options("allocator"), config.search.nodes_per_tree
    if options.low > nodes:
        reason = (
            f"is more than search.nodes_per_tree = {nodes}, which each tree has on average; lower "
            "it"
        )
        yield Misfit("search.knapsack.low", options.low, reason)
    if options.high < nodes:
        reason = (
            f"is less than search.nodes_per_tree = {nodes}, which each tree would have on average: "
            "the rest is never spent; raise it"
        )
        yield Misfit("search.knapsack.high", options.high, reason, refused=False)
    if options.warmup_steps >= config.training.steps:
        reason = (
            f"with training.steps = {config.training.steps}: every tree has the same number of "
            "nodes; lower it"
        )
        yield Misfit("search.knapsack.warmup_steps", options.warmup_steps, reason, refused=False)
    yield from rarely_seen(config, "search.allocator")


def memory(search: SearchConfig) -> PassRates:
    """Returns the memory of a run that begins."""
    return PassRates()


def divide(problems: Sequence[int], search: SearchConfig, memory: PassRates) -> list[int]:
    """Returns the nodes of each problem's tree, which are those of `uniform` at first."""
    options = search.options("allocator")
    if memory.steps < options.warmup_steps:
        return uniform.divide(problems, search, None)
    budget = len(problems) * search.nodes_per_tree
    return budgets(memory.rates_of(problems), budget, options.low, options.high)


def budgets(rates_P: Sequence[float], budget: int, low: int, high: int) -> list[int]:
    """Returns the number of answers to each of P problems, `low` to `high` each and at most
    `budget` together; the optimum if `low` is 1 or more.

    Raises:
        ValueError: `low` answers to every problem cost more than the budget.
    """
    nodes_P = [low] * len(rates_P)
    left = budget - sum(nodes_P)
    if left < 0:
        raise ValueError(
            f"budget = {budget}: {len(rates_P)} problems with low = {low} need {sum(nodes_P)}; "
            "raise the budget, or lower low"
        )
    left -= _spend(nodes_P, range(len(nodes_P)), left, high, lambda i, n: -gain(rates_P[i], n))
    unsolved = [i for i, rate in enumerate(rates_P) if rate == 0.0]
    _spend(nodes_P, unsolved, left, high, lambda i, n: n - high)
    return nodes_P


def gain(rate: float, nodes: int) -> float:
    """Returns what an answer adds to the value of `nodes` answers."""
    miss = 1.0 - rate
    return (rate**nodes * miss + miss**nodes * rate) * rate * miss**2


def _spend(
    nodes_P: list[int],
    problems: Sequence[int],
    left: int,
    high: int,
    cost: Callable[[int, int], float],
) -> int:
    """Adds up to `left` nodes, one at a time, to whichever problem has the lowest cost, below 0, of
    its next node; returns how many it added."""
    queue = [(cost(i, nodes_P[i]), i) for i in problems if nodes_P[i] < high]
    heapq.heapify(queue)
    spent = 0
    while queue and spent < left and queue[0][0] < 0:
        _, i = queue[0]
        nodes_P[i] += 1
        spent += 1
        if nodes_P[i] < high:
            heapq.heapreplace(queue, (cost(i, nodes_P[i]), i))
        else:
            heapq.heappop(queue)
    return spent


def _golden(case: Case) -> Any:
    inputs = case["inputs"]
    rates = inputs["pass_rates"]
    nodes_P = budgets(rates, inputs["budget"], inputs["low"], inputs["high"])
    gained = [
        sum(gain(rate, nodes) for nodes in range(1, count))
        for rate, count in zip(rates, nodes_P, strict=True)
    ]
    return {"budgets": nodes_P, "value": sum(gained)}


GOLDEN = {"rollout_budget": Kind(_golden, "pass_rates budget low high")}
