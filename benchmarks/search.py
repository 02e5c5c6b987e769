"""CPU time of the search itself by tree size, against TreeQuest.

CPU seconds of bookkeeping per node: selection, the request, and recording the answer, in a forest
of one tree as in training. Every answer holds 4,000 tokens with their log-probabilities; nothing is
generated or verified. Scores are drawn from a seed, by agent.

The peer is TreeQuest's AB-MCTS-A with the same family of posteriors, two agents and scores, on
trees of 64 nodes: `step()` as its users call it, which copies the tree, and in place. Its tree
holds the answers in the same packed form as ours, the cheapest to copy. Before anything is timed,
its own draws are replayed to our tree: both must open the same nodes.

`growth_4096_over_64` compares our CPU seconds per node and per level of the tree's mean depth, and
is the worst over families of posteriors and orders of selection; each of them is in the figures.
The sizes take turns in rounds: a round grows exactly the same trees, and each node counts with its
minimum over the rounds, so that other load affects no size alone. Trees of one size are kept until
together they have as many nodes as the largest tree: every size has the same memory in use, and the
garbage collector, which runs as in training and at the same nodes in each round, traverses as many
nodes of small trees as of the large one. (When a small tree was alone in memory, up to a third of
the large tree's time was the collector's, a cost that small trees did not have.)
`..._growth_of_thirds` are the same from each third of the rounds: their spread, and their excess
over the growth of all rounds, is noise.
"""

from __future__ import annotations

import argparse
import gc
import pickle
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from benchmarks import PeerMissing, at_least, at_most
from engine.config.search import SearchConfig
from engine.config.thompson import Posterior, SelectionOrder
from engine.environments.programs.prompts import Feedback
from engine.environments.types import Settled
from engine.events.vocabulary import StopReason, TestReport, Verdict
from engine.policy.types import Answer, Generation
from engine.problems.generator import make_problem
from engine.rollout.forest import Forest, public_score
from engine.sandbox.host.verify import Verification
from engine.search.strategies import planted

SUMMARY = "CPU seconds of bookkeeping per node of a search tree, against TreeQuest"
GOALS = {
    "vs_treequest_step_64": at_least(20),
    "vs_treequest_inplace_64": at_least(1),
    "growth_4096_over_64": at_most(1.5),
}
SIZES = (8, 64, 512, 4096)
TOKENS = 4000
SKILL = {"oak": 0.35, "fern": 0.15}
"""Probability that an answer of an agent is right, for any request."""
STRATEGIES = {
    SelectionOrder.AGENT_FIRST: "stack",
    SelectionOrder.NODE_FIRST: "multiarm_bandit_thompson",
}
PROBLEM = make_problem(1, 1)[0]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--largest", type=int, default=max(SIZES), help="largest tree")
    parser.add_argument("--nodes", type=int, default=4096, help="least nodes per size and setting")
    parser.add_argument("--rounds", type=int, default=6, help="times that each tree is grown")
    parser.add_argument("--peer-trees", type=int, default=3, help="trees that TreeQuest grows")


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Returns ratios, figures and versions; microseconds are CPU time of this process."""
    try:
        version("treequest")
    except PackageNotFoundError:
        raise PeerMissing('treequest is not installed: pip install "grove-rl[dev]"') from None
    figures: dict[str, Any] = {}
    growth = []
    sizes = [size for size in SIZES if size <= arguments.largest]
    for family in Posterior:
        for order in SelectionOrder:
            same_nodes_as_treequest(family, order)
            thirds = _ours(family, order, sizes, arguments.nodes, arguments.rounds)
            ours = thirds[-1]
            name = f"{family}_{order}"
            for size, (seconds, depth) in ours.items():
                figures[f"{name}_{size}_us_per_node"] = round(1e6 * seconds, 1)
                figures[f"{name}_{size}_mean_depth"] = round(depth, 2)
            if {64, 4096} <= ours.keys():
                *parts, whole = map(_growth, thirds)
                growth.append(whole)
                figures[f"{name}_growth"] = round(whole, 2)
                figures[f"{name}_growth_of_thirds"] = [round(part, 2) for part in parts]
    ratios = _against_treequest(arguments.peer_trees, figures)
    if growth:
        ratios["growth_4096_over_64"] = round(max(growth), 2)
    versions = {name: version(name) for name in ("treequest", "numpy", "scipy")}
    versions |= {"python": platform.python_version(), "machine": platform.machine()}
    return {"ratios": ratios, "figures": figures, "versions": versions}


@dataclass
class Scores:
    """The answers that a tree receives, one by one; equal seeds give equal ones."""

    seed: int

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng([self.seed, 17])
        ids = self._rng.integers(0, 150_000, TOKENS).tolist()
        logprobs = self._rng.normal(-1, 0.5, TOKENS).tolist()
        generation = Generation(ids[:500], ids, logprobs, StopReason.END_OF_TEXT, 0, 0.0)
        answer = Answer(generation, "def solve(x):\n    return x\n", "x" * TOKENS)
        self._packed = pickle.dumps(answer)  # as it arrives from the process of a model

    def next(self, agent: str) -> tuple[Answer, Verification]:
        """Returns an answer with tokens of its own, as from a generator, and its verdict."""
        passed = bool(self._rng.random() < SKILL[agent])
        verdict = Verdict.PASSED if passed else Verdict.WRONG_ANSWER
        reports = tuple(TestReport(verdict, "1", "1", "1") for _ in PROBLEM.public_tests)
        share = float(passed)
        judged = Verification(verdict, share, reports, passed * len(reports), passed)
        return pickle.loads(self._packed), judged


Costs = dict[int, tuple[float, float]]
"""CPU seconds per node and the mean depth, by size, over enough trees for the least nodes."""


def _ours(
    family: Posterior, order: SelectionOrder, sizes: Sequence[int], least: int, rounds: int
) -> list[Costs]:
    """Returns the costs by the minimum over each third of the rounds, and last over all rounds."""
    trees = [(size, seed) for size in sizes for seed in range(max(1, least // size))]
    seconds: list[dict[tuple[int, int], np.ndarray]] = [{}, {}, {}]
    depths: dict[tuple[int, int], float] = {}
    for number in range(rounds):
        part = seconds[number % len(seconds)]
        for size in sizes:
            of_size = [tree for tree in trees if tree[0] == size]
            grown = _grown(family, order, size, [seed for _, seed in of_size])
            for tree, (seconds_N, depth) in zip(of_size, grown, strict=True):
                part[tree] = np.minimum(seconds_N, part.get(tree, np.inf))
                depths[tree] = depth
    parts = [part for part in seconds if part]
    whole = {tree: np.minimum.reduce([part[tree] for part in parts]) for tree in trees}
    return [_costs(trees, part, depths) for part in (*parts, whole)]


def _costs(
    trees: Sequence[tuple[int, int]],
    seconds: dict[tuple[int, int], np.ndarray],
    depths: dict[tuple[int, int], float],
) -> Costs:
    by_size: dict[int, list[tuple[int, int]]] = {}
    for tree in trees:
        by_size.setdefault(tree[0], []).append(tree)
    return {
        size: (
            statistics.fmean(float(seconds[tree].mean()) for tree in some),
            statistics.fmean(depths[tree] for tree in some),
        )
        for size, some in by_size.items()
    }


def _growth(costs: Costs) -> float:
    """Returns CPU seconds per node and level of the largest trees over those of 64 nodes."""
    per_level = {size: seconds / depth for size, (seconds, depth) in costs.items()}
    return per_level[4096] / per_level[64]


def _grown(
    family: Posterior, order: SelectionOrder, size: int, seeds: Sequence[int]
) -> list[tuple[np.ndarray, float]]:
    """Returns CPU seconds of each node of a tree, and its mean depth, for each seed; keeps the
    trees until the last one is complete."""
    search = SearchConfig(nodes_per_tree=size, posterior=family, selection_order=order)
    gc.collect()  # garbage of earlier measurements
    gc.freeze()
    forests, results = [], []
    for seed in seeds:
        forest = Forest([PROBLEM], tuple(SKILL), search, public_score, [seed])
        forests.append(forest)
        results.append((_seconds(forest, Scores(seed), size), _mean_depth(forest)))
    return results


def _mean_depth(forest: Forest) -> float:
    return statistics.fmean(node.depth for node in forest.trees[0].search.nodes[1:])


def _seconds(forest: Forest, scores: Scores, size: int) -> np.ndarray:
    """Returns CPU seconds of each node of the forest's one tree, which grows to this size."""
    seconds_N = np.zeros(size)
    for node in range(size):
        started = time.process_time()
        (claim,) = forest.claim(forest.trees)
        claim.tree.request(claim.expansion)
        seconds_N[node] = time.process_time() - started
        answer, verification = scores.next(claim.expansion.agent)
        started = time.process_time()
        settled = Settled(verification, Feedback(answer.program, verification.public))
        forest.close(claim, answer, settled)
        seconds_N[node] += time.process_time() - started
    assert len(forest.trees[0].written) == size
    return seconds_N


def _against_treequest(trees: int, figures: dict[str, Any]) -> dict[str, float]:
    """Times both in turns, with TreeQuest's default family and our default order."""
    family, order = Posterior.GAUSSIAN, SelectionOrder.AGENT_FIRST
    ours, copied, inplace = [], [], []
    for seed in range(trees):
        ours.append(statistics.median(_seconds_of_one_tree(family, order, s) for s in range(5)))
        copied.append(_treequest(family, order, 64, seed, inplace=False))
        inplace.append(_treequest(family, order, 64, seed, inplace=True))
    for name, seconds in (("ours", ours), ("treequest_step", copied), ("inplace", inplace)):
        figures[f"{name}_64_us_per_node"] = round(1e6 * statistics.median(seconds) / 64, 1)
    return {
        "vs_treequest_step_64": _ratio(copied, ours),
        "vs_treequest_inplace_64": _ratio(inplace, ours),
    }


def _seconds_of_one_tree(family: Posterior, order: SelectionOrder, seed: int) -> float:
    """Returns CPU seconds of a whole tree of 64 nodes, alone in memory like the peer's."""
    ((seconds_N, _),) = _grown(family, order, 64, [seed])
    return float(seconds_N.sum())


def _ratio(peer: list[float], ours: list[float]) -> float:
    return round(statistics.median(p / o for p, o in zip(peer, ours, strict=True)), 2)


def _treequest(
    family: Posterior, order: SelectionOrder, size: int, seed: int, *, inplace: bool
) -> float:
    """Returns CPU seconds of `step` for a whole tree, without the making of answers."""
    from treequest import ABMCTSA

    np.random.seed(seed)
    algorithm = ABMCTSA(dist_type=str(family), model_selection_strategy=STRATEGIES[order])
    state, scores = algorithm.init_tree(), Scores(seed)
    making = 0.0

    def writer(agent: str) -> Callable[[Any], tuple[Answer, float]]:
        def write(_: Any) -> tuple[Answer, float]:
            nonlocal making
            started = time.process_time()
            answer, verification = scores.next(agent)
            making += time.process_time() - started
            return answer, verification.fraction

        return write

    writers = {agent: writer(agent) for agent in SKILL}
    started = time.process_time()
    for _ in range(size):
        state = algorithm.step(state, writers, inplace=inplace)
    return time.process_time() - started - making


class Played:
    """Replays TreeQuest's draws, in its order, to our tree in place of a random generator.

    TreeQuest draws GEN and CONT even where there is no child to enter; the caller leaves those out
    of `draws`.
    """

    def __init__(self) -> None:
        self.draws: list[tuple[dict[str, float], float]] = []

    def beta(self, a: Any, b: Any) -> Any:
        return self._next(a, lambda params, value: value)

    def standard_t(self, nu: Any) -> Any:
        return self._next(nu, _standardised)

    def _next(self, shape: Any, made: Callable[[dict[str, float], float], float]) -> Any:
        drawn = [made(*self.draws.pop(0)) for _ in range(np.size(shape))]
        return np.array(drawn) if np.ndim(shape) else drawn[0]


def _standardised(params: dict[str, float], value: float) -> float:
    return (value - params["m"]) / np.sqrt(params["tau_square"] / params["kappa"])


def same_nodes_as_treequest(family: Posterior, order: SelectionOrder, nodes: int = 64) -> None:
    """Raises AssertionError unless both open the same nodes for the same scores and draws."""
    from treequest import ABMCTSA

    np.random.seed(nodes)
    rng = np.random.default_rng(nodes)
    algorithm = ABMCTSA(dist_type=str(family), model_selection_strategy=STRATEGIES[order])
    state, played = algorithm.init_tree(), Played()
    tree = planted(tuple(SKILL), SearchConfig(posterior=family, selection_order=order), played)
    with _recorded() as draws:
        for _ in range(nodes):
            draws.clear()
            state, (trial,) = algorithm.ask_batch(state, 1, list(SKILL))
            idle = _drawn_in_vain(state)
            played.draws = [(params, value) for own, params, value in draws if id(own) not in idle]
            expansion = tree.select()
            theirs = (trial.node_to_expand + 1, trial.action)
            assert (expansion.parent, expansion.agent) == theirs and not played.draws
            score = float(rng.random() < SKILL[expansion.agent])
            algorithm.tell(state, trial.trial_id, ("program", score))
            tree.close(tree.open(expansion), score)


class _recorded:
    """Records every draw of TreeQuest in the block: (distribution, its parameters, value)."""

    def __enter__(self) -> list[tuple[object, dict[str, float], float]]:
        from treequest.algos.ab_mcts_a.prob_state import ProbabilisticDist

        self._kind, self._own = ProbabilisticDist, ProbabilisticDist.draw_sample
        draws: list[tuple[object, dict[str, float], float]] = []

        def recording(dist: Any) -> float:
            value = float(self._own(dist))
            draws.append((dist, dict(dist.params), value))
            return value

        self._kind.draw_sample = recording
        return draws

    def __exit__(self, *_: object) -> None:
        self._kind.draw_sample = self._own


def _drawn_in_vain(state: Any) -> set[int]:
    """Returns the ids of GEN and CONT of childless nodes, which TreeQuest draws without effect."""

    def pairs() -> Iterator[Any]:
        for pool_state in state.thompson_states.states.values():
            for name, pair in pool_state.gen_vs_cont_probas.items():
                if not pool_state.node_probas[name]:
                    yield from pair.values()

    return {id(dist) for dist in pairs()}
