"""Steps per minute with generation and learning overlapped, against alternating ones.

The engine trains one model, as a process of its own with one core, and one thread of torch, for
each of its actors: alternating, where one actor generates and learns in turns, and with
`training.overlap`, where a generator works on the next step while the learner learns from the last;
and with that, up to two steps ahead, with answers that are stopped for new weights and carried on
with them (`training.steps_ahead`, `training.interrupt`).
Two threads for the one actor made alternating slower on two cores, not faster. Both learn with
published settings, in four minibatches (those of GSPO) and with a reference (that of MARS²): for
every node three passes forward and one back, so that learning takes at least as long as generation.
All take turns, seed by seed, and learn from every node. Seconds run from the start of the third
step to the last update, so that neither start-up nor remaining work is counted.

The model is a starter with more layers, initialised as the identity: it answers as the starter
does, at the cost of a larger one. In a starter's own step a third of the CPU time goes to the
sandbox and the loop, which an alternating run puts on the second core anyway; with models of
practical size that share is small. `--layers 2 --trees 32` uses the starter unchanged.

Each must have learned from as many nodes as the alternating one, and the mean rewards of their last
third of steps must not differ by more than three standard errors of the difference (over nodes of
all seeds, counted as independent) or 0.05; otherwise there is no ratio.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from math import sqrt
from pathlib import Path
from typing import Any

from benchmarks import at_least
from benchmarks.deeper import deeper
from engine.config.schema import RunConfig, parse_config
from engine.events.log import read_all
from engine.events.vocabulary import Event
from engine.resources.machine_cores import machine_cores

SUMMARY = "steps per minute with writing and learning overlapped, against alternating"
GOALS = {"overlap": at_least(1.3), "overlap_ahead": at_least(1.6)}
WAYS = {
    "alternating": ({"generators_per_agent": 0}, {"overlap": False}),
    "overlapped": ({"generators_per_agent": 1}, {"overlap": True}),
    "ahead": (
        {"generators_per_agent": 1},
        {"overlap": True, "steps_ahead": 2, "interrupt": True},
    ),
}
RATIOS = {"overlap": "overlapped", "overlap_ahead": "ahead"}
"""Each ratio is of this way to the alternating one."""
WARM_UP = 2
"""Number of first steps that are not timed."""
LIMIT_SECONDS = 600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=10, help="steps of each run")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each way")
    parser.add_argument("--trees", type=int, default=8, help="trees per step")
    parser.add_argument("--layers", type=int, default=12, help="of the model; a starter has 2")


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Returns ratios, figures and versions; a ratio is the median over the seeds."""
    runs: dict[str, list[RunResult]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        model = deeper("oak", arguments.layers, Path(folder) / "model")
        for seed in range(arguments.seeds):
            for way in WAYS:
                config = settings(way, seed, model, arguments.steps, arguments.trees)
                runs[way].append(_train(Path(folder) / f"{way}-{seed}", config))
    figures: dict[str, Any] = {}
    for way, mine in runs.items():
        figures |= _figures(way, mine)
    ratios = {}
    for name, way in RATIOS.items():
        if problem := _unequal(runs["alternating"], runs[way], figures):
            figures["failed"] = f"{name}: {problem}"
        else:
            pairs = zip(runs["alternating"], runs[way], strict=True)
            ratios[name] = round(statistics.median(a.seconds / o.seconds for a, o in pairs), 2)
    versions = {name: version(name) for name in ("ray", "torch")}
    versions |= {"python": platform.python_version(), "cores": str(machine_cores())}
    return {"ratios": ratios, "figures": figures, "versions": versions}


def settings(way: str, seed: int, model: Path, steps: int, trees: int) -> RunConfig:
    """Returns the settings of a run, equal for all ways except for what is compared."""
    compute, training = WAYS[way]
    agent = {
        "name": "oak",
        "model": str(model),
        "sampling": {"max_prompt_tokens": 192, "max_new_tokens": 32},
        "optimizer": {"learning_rate": 1e-3, "schedule": "constant", "warmup_fraction": 0.0},
    }
    return parse_config(
        {
            "seed": seed,
            "agents": [agent],
            "problems": {"seed": 7, "train": 4000, "validation": 0, "test": 0},
            "search": {"nodes_per_tree": 8, "nodes_in_flight": 2},
            "credit": {"dynamic_filter": False},
            "training": {
                "steps": steps, "trees_per_step": trees, "checkpoint_every": 10 * steps,
                "validate_every": 10 * steps, "micro_batch_tokens": 4096, "minibatches": 4,
                **training,
            },
            "sandbox": {"workers": 2},
            "compute": {"device": "cpu", "lanes": 1, **compute},
        }
    )  # fmt: skip


@dataclass(frozen=True)
class RunResult:
    """Results of one run."""

    seconds: float
    steps: int
    nodes_learned: int
    """Number of nodes in its updates."""
    rewards: list[tuple[float, int]]
    """Mean reward and nodes of each step of the last third."""
    phases: dict[str, float]
    lag: float


def _train(folder: Path, config: RunConfig) -> RunResult:
    folder.mkdir()
    (folder / "config.json").write_text(config.model_dump_json())
    command = [sys.executable, "-m", "engine", "train", str(folder)]
    environment = os.environ | {"RAY_ADDRESS": ""}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=LIMIT_SECONDS
    )
    if done.returncode:
        raise RuntimeError(f"the engine ended with {done.returncode}: {done.stderr[-2000:]}")
    return _read(list(read_all(folder)), config.training.steps)


def _read(events: list[Event], steps: int) -> RunResult:
    started = {e.payload["step"]: e.time for e in events if e.kind == "step.start"}
    updates = [e for e in events if e.kind == "agent.update"]
    ended = [e.payload for e in events if e.kind == "step.end"]
    timed = ended[WARM_UP:]
    return RunResult(
        seconds=updates[-1].time - started[WARM_UP + 1],
        steps=steps - WARM_UP,
        nodes_learned=sum(e.payload["nodes"] for e in updates),
        rewards=[(step["reward"], step["nodes"]) for step in ended[-(steps // 3) :]],
        phases={
            name: statistics.fmean(step["phases"].get(name, 0.0) for step in timed)
            for name in ("generate", "verify", "learn", "sync")
        },
        lag=statistics.fmean(e.payload["lag"] for e in updates),
    )


def _figures(way: str, runs: list[RunResult]) -> dict[str, Any]:
    steps, seconds = sum(r.steps for r in runs), sum(r.seconds for r in runs)
    figures = {
        f"{way}_steps_per_minute": round(60 * steps / seconds, 2),
        f"{way}_nodes_learned": sum(r.nodes_learned for r in runs),
        f"{way}_reward": round(_reward(runs)[0], 4),
        f"{way}_lag": round(statistics.fmean(r.lag for r in runs), 2),
    }
    for name in runs[0].phases:
        waited = statistics.fmean(r.phases[name] for r in runs)
        figures[f"{way}_waits_for_{name}_s"] = round(waited, 3)
    return figures


def _reward(runs: list[RunResult]) -> tuple[float, float]:
    """Returns the mean over the nodes of the last steps, and its squared standard error."""
    nodes = sum(n for run in runs for _, n in run.rewards)
    mean = sum(reward * n for run in runs for reward, n in run.rewards) / nodes
    return mean, mean * (1 - mean) / nodes


def _unequal(one: list[RunResult], other: list[RunResult], figures: dict[str, Any]) -> str:
    """Returns why the two did not do the same work; empty if they did."""
    if [run.nodes_learned for run in one] != [run.nodes_learned for run in other]:
        return "they trained on different numbers of nodes"
    (mine, my_error), (theirs, their_error) = _reward(one), _reward(other)
    allowed = max(0.05, 3 * sqrt(my_error + their_error))
    figures["reward_difference_allowed"] = round(allowed, 4)
    if abs(mine - theirs) > allowed:
        return f"their rewards differ: {mine:.3f} and {theirs:.3f}"
    return ""
