"""Speedup by several expansions in flight, and their effect on the shape of the tree.

Trees of 32 nodes by two agents, grown by the loop of a search at test time: the same scheduler,
forest and refill after each end. Only the models and the tests are simulated: an answer arrives
after a latency, and contains its program's quality. The latencies of a tree are the 32 equally
likely quantiles of a lognormal distribution (median 50 ms, sigma 0.8) in an order of its own, so
that all trees have the same total; a first program has a quality of at most 0.6, a repair that of
its parent plus noise.

`k4_speedup`: seconds of trees that grow one node at a time over those of the same with four in
flight. `trees16_over_1`: sixteen trees at once, over the mean of each alone, four in flight in
both. The figures hold root children, greatest depth and best quality alongside the times: choices
made before answers return have less information, and the tree widens.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import statistics
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from statistics import NormalDist
from typing import Any

import numpy as np

from benchmarks import at_least, at_most
from engine.config.deadlines import Deadline
from engine.config.schema import RunConfig, parse_config
from engine.environments.opening import open_environment
from engine.events.vocabulary import StopReason, TestReport, Verdict
from engine.inference.backends import AgentRequest
from engine.inference.local_team import LocalTeam
from engine.policy.types import Answer, Generation
from engine.problems.generator import make_problem
from engine.problems.problem import Problem
from engine.rollout.forest import Forest, public_score
from engine.sandbox.host.verify import Verification

SUMMARY = "several expansions of a tree in flight, and several trees, against one at a time"
GOALS = {"k4_speedup": at_least(3), "trees16_over_1": at_most(1.3)}
AGENTS = ("oak", "fern")
NODES, MEDIAN, SIGMA, TREES = 32, 0.05, 0.8, 16
IN_FLIGHT = (1, 4, 8)
PUBLIC_TESTS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trees", type=int, default=8, help="trees per number in flight")
    parser.add_argument("--median", type=float, default=MEDIAN, help="seconds of the median answer")


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Returns ratios, figures and versions; seconds are wall time, per tree."""
    latency = _quantiles(arguments.median)
    with Timer() as timer:
        grown = {
            k: [_grow(timer, latency, k, [seed]) for seed in range(arguments.trees)]
            for k in IN_FLIGHT
        }
        single = [_grow(timer, latency, 4, [seed]) for seed in range(TREES)]
        together = _grow(timer, latency, 4, list(range(TREES)))
    figures: dict[str, Any] = {"latency_mean_ms": round(1000 * float(latency.mean()), 1)}
    for k, runs in grown.items():
        figures |= {f"k{k}_{name}": value for name, value in _shape(runs).items()}
    figures["trees16_seconds"] = round(together.seconds, 3)
    one, four = (sum(run.seconds for run in grown[k]) for k in (1, 4))
    ratios = {
        "k4_speedup": round(one / four, 2),
        "trees16_over_1": round(
            together.seconds / statistics.fmean(run.seconds for run in single), 2
        ),
    }
    versions = {"python": platform.python_version(), "numpy": version("numpy")}
    return {"ratios": ratios, "figures": figures, "versions": versions}


def _quantiles(median: float) -> np.ndarray:
    """Returns the seconds of the answers of one tree."""
    normal = NormalDist(np.log(median), SIGMA)
    return np.exp([normal.inv_cdf((index + 0.5) / NODES) for index in range(NODES)])


@dataclass
class Grown:
    """Trees that grew concurrently."""

    seconds: float
    forest: Forest


def _grow(timer: Timer, latency: np.ndarray, in_flight: int, seeds: Sequence[int]) -> Grown:
    config = parse_config(
        {
            "agents": [{"name": name, "model": f"starter:{name}"} for name in AGENTS],
            "search": {"nodes_per_tree": NODES, "nodes_in_flight": in_flight},
        }
    )
    problems = [_problem(seed) for seed in seeds]
    forest = Forest(problems, AGENTS, config.search, public_score, [in_flight, *seeds[:1]])
    model = Model(timer, {f"tree {seed}": Course(latency, seed) for seed in seeds})
    with SimulatedTeam(config, model) as team:
        started = time.perf_counter()
        team.grow("", forest)
        seconds = time.perf_counter() - started
    if any(len(tree.written) != NODES for tree in forest.trees):
        raise RuntimeError("a tree did not spend its budget; nothing can be compared")
    return Grown(seconds, forest)


def _problem(seed: int) -> Problem:
    problem = make_problem(1, 1)[0]
    return Problem(
        f"tree {seed}", problem.statement, problem.entry_point,
        problem.public_tests, problem.private_tests,
    )  # fmt: skip


def _shape(runs: Sequence[Grown]) -> dict[str, float]:
    trees = [tree for run in runs for tree in run.forest.trees]
    return {
        "seconds": round(statistics.fmean(run.seconds for run in runs), 3),
        "root_children": round(statistics.fmean(len(t.search.nodes[0].children) for t in trees), 2),
        "depth": round(statistics.fmean(max(n.depth for n in t.search.nodes) for t in trees), 2),
        "best_score": round(statistics.fmean(max(t.scores()) for t in trees), 3),
    }


@dataclass
class Course:
    """Latencies and qualities of the answers of one tree, in the order of the requests."""

    latency: np.ndarray
    seed: int

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng([self.seed, 29])
        self._seconds = iter(self._rng.permutation(self.latency).tolist())

    def next(self, parent: float | None) -> tuple[float, float]:
        """Returns the next answer's seconds and quality, from 0 to 1."""
        if parent is None:
            quality = 0.6 * self._rng.random() ** 2
        else:
            quality = parent + self._rng.normal(0.03, 0.12)
        return next(self._seconds), float(np.clip(quality, 0.0, 1.0))


class Timer:
    """Sets futures after a delay, any number concurrently, from a thread of its own."""

    def __enter__(self) -> Timer:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def after(self, seconds: float, result: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._loop.call_soon_threadsafe(self._loop.call_later, seconds, future.set_result, result)
        return future


@dataclass(eq=False)
class Model:
    """Backend of both agents (an `AnswerBackend`): waits, and answers with a program that contains
    its quality."""

    timer: Timer
    courses: dict[str, Course]
    calls_at_once: int = 4096
    requests_per_call: int = 1

    def ready(self, deadline: Deadline) -> None:
        pass

    def answer(
        self, batch: Sequence[AgentRequest], temperature: float | None
    ) -> Future[list[Answer]]:
        (request,) = (item.request for item in batch)
        parent = float(request.observation.program) if request.observation else None
        seconds, quality = self.courses[request.task.id].next(parent)
        generation = Generation([1], [2], [-1.0], StopReason.END_OF_TEXT, 0, seconds)
        return self.timer.after(seconds, [Answer(generation, str(quality))])

    def close(self) -> None:
        pass


class StatedQuality:
    """Verifier in place of the tests: passes the share of public tests that the program states."""

    def verify(self, programs: Sequence[tuple[Problem, str]]) -> list[Verification]:
        return [self._judged(float(program)) for _, program in programs]

    def _judged(self, quality: float) -> Verification:
        passed = round(PUBLIC_TESTS * quality)
        verdict = Verdict.PASSED if passed == PUBLIC_TESTS else Verdict.WRONG_ANSWER
        reports = (TestReport(verdict, "", ""),) * PUBLIC_TESTS
        return Verification(verdict, quality, reports, passed, passed == PUBLIC_TESTS)


class NothingToCheck:
    def when_due(self) -> None:
        pass


@dataclass
class SimulatedTeam(LocalTeam):
    """A `LocalTeam` of simulated agents, without a sandbox."""

    config: RunConfig
    model: Model
    stopping: bool = False
    leaving: bool = False
    check: NothingToCheck = field(default_factory=NothingToCheck)
    verifier: StatedQuality = field(default_factory=StatedQuality)

    def __post_init__(self) -> None:
        self.backends = dict.fromkeys(AGENTS, self.model)
        self.threads = ThreadPoolExecutor(1, "verifier")
        self.environment = open_environment(self.config)
        self.report = lambda text: None
        self.count = lambda: None

    def close(self) -> None:
        self.threads.shutdown()
