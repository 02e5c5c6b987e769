"""Rollouts per second of a GRPO step, against TRL's GRPOTrainer on the same CPU.

Both train the starter oak in float32 on the same problems in the same order: 8 prompts a step, a
group of 8 answers of up to 32 tokens to each, one AdamW update from all 64 at the same learning
rate, by the loss of GRPO (clip 0.2, mean over tokens, then over answers; no divergence term). Both
verify with the same sandbox of two workers, which runs equal programs once, and have the same
number of threads. Ours is the whole engine, `python -m engine train` with Ray and its log; TRL
generates with transformers' `generate`, calls its reward function for a whole batch at once, and
logs, saves and reports nothing. They take turns in rounds; a step's time is from the end of one to
the end of the next, without the first ones.

A statement ends with the public tests as worked examples, as in HumanEval, APPS or LeetCode:
without them the statement of a generated problem has some 15 tokens, and its answer is as long as
its prompt, unlike in any published problem set. `vs_trl` is rollouts per second over TRL's;
`vs_trl_bare` is the same for the statements without examples. Our engine verifies finished answers
while the others are in flight: its `verify_ms` is the remaining wait after that, TRL's is the whole
verification. `..._without_verify` excludes both from the step.

What limits `vs_trl_bare` on two cores, by CPU time per step of 64 answers of 9 tokens (AMD EPYC):
the sandbox 125 ms and its verifier 38 ms, generation and learning 95 to 120, the loop 25, Ray 6, in
all 290 to 320 ms; TRL 398 ms in one process and 143 ms of sandbox. If all but the update were
spread over both cores without a gap, a step would take some 170 ms, and TRL's some 470: a ratio of
2.7. More than half of our step is verification, which TRL needs as well, so neither faster
generation nor a faster loop reaches 3; a cheaper run of a program in the sandbox would help both.
For the same reason verdicts cannot be ready before the last answer: verification takes more CPU
time than generation, which occupies one of the two cores.

Guards: on the same rows both losses and their gradients must agree, including ratios beyond the
clip; prompts must be the same tokens; and the tokens per answer must agree within 10 %, since the
two draw different random numbers.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import PeerMissing, at_least
from engine.config.schema import RunConfig, parse_config
from engine.events.log import read_all
from engine.problems.jsonl import save_problems
from engine.problems.problem import CallTest, Problem
from engine.problems.source import GENERATED, load_problem_set
from engine.sandbox.guest.literals import to_literal

SUMMARY = "a GRPO step, rollouts per second against TRL"
GOALS = {"vs_trl": at_least(3), "vs_trl_bare": at_least(3)}
PROMPTS, GROUP, WARM_UP = 8, 8, 3
SAMPLING = {"max_prompt_tokens": 384, "max_new_tokens": 32}
STATEMENTS = ("worked", "bare")
RATE = 1e-6
"""Learning rate; small, so that the length of answers does not change."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=12, help="steps per round that are measured")
    parser.add_argument("--rounds", type=int, default=2, help="rounds over both")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch that each has")
    parser.add_argument("--statements", nargs="+", choices=STATEMENTS, default=STATEMENTS,
                        help="only with examples, or only without")  # fmt: skip


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Returns ratios, figures and versions; milliseconds are medians per step.

    Raises:
        PeerMissing: TRL is not installed.
        RuntimeError: the two do not do the same work.
    """
    try:
        import trl
    except ImportError:
        raise PeerMissing(
            "trl is not installed; pip install -c constraints.txt '.[bench]'"
        ) from None
    import torch
    import transformers

    from benchmarks.trl_peer import Peer, check_same_loss

    torch.set_num_threads(arguments.threads)
    figures: dict[str, Any] = {"rollouts_per_step": PROMPTS * GROUP, "threads": arguments.threads}
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        bare = config(WARM_UP + arguments.steps, arguments.threads)
        file = Path(folder) / "problems.jsonl"
        save_problems(file, _with_examples(bare))
        worked = config(WARM_UP + arguments.steps, arguments.threads, str(file))
        gap = check_same_loss(worked)
        runs = {"worked": ("", worked), "bare": ("bare_", bare)}
        for kind, run in (runs[name] for name in arguments.statements):
            ours: list[dict[str, float]] = []
            theirs: list[dict[str, float]] = []
            for _ in range(arguments.rounds):
                ours += _engine_steps(run)[WARM_UP:]
                theirs += Peer(run).train()[WARM_UP:]
            _check_same_work(ours, theirs)
            suffix = "_bare" if kind else ""
            ratios[f"vs_trl{suffix}"] = _ratio(ours, theirs, "step")
            ratios[f"vs_trl{suffix}_without_verify"] = _ratio(ours, theirs, "rest")
            figures |= {f"{kind}{name}": value for name, value in _figures(ours, theirs).items()}
    figures |= {"loss_gap": gap[0], "gradient_gap": gap[1]}
    versions = {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
        "trl": trl.__version__,
    }
    return {"ratios": ratios, "figures": figures, "versions": versions}


def _figures(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> dict[str, Any]:
    """Returns medians over the steps, in milliseconds; TRL's have the prefix `trl_`."""
    figures: dict[str, Any] = {"steps": len(ours)}
    for prefix, steps in (("", ours), ("trl_", theirs)):
        rate = PROMPTS * GROUP / _median(steps, "step")
        figures[f"{prefix}rollouts_per_second"] = round(rate, 1)
        for phase in ("step", "generate", "verify", "learn", "sync"):
            figures[f"{prefix}{phase}_ms"] = round(1000 * _median(steps, phase), 1)
        figures[f"{prefix}tokens_per_rollout"] = round(_mean(steps, "tokens"), 2)
    return figures | {"tokens_per_prompt": round(_mean(theirs, "prompt_tokens"), 1)}


def _with_examples(run: RunConfig) -> Iterator[Problem]:
    """Yields the problems of a run, with the public tests of each in its statement."""
    count = run.training.steps * run.training.trees_per_step
    for problem in load_problem_set(run.problems).numbered(range(count)):
        tests = [test for test in problem.public_tests if isinstance(test, CallTest)]
        lines = [
            f"{problem.entry_point}({', '.join(map(to_literal, test.arguments))}) gives "
            f"{to_literal(test.expected)}."
            for test in tests
        ]
        yield replace(problem, statement="\n".join([problem.statement, *lines]))


def config(steps: int, threads: int, dataset: str = GENERATED) -> RunConfig:
    """Returns the engine's settings, from which TRL's are derived."""
    agent = {
        "name": "oak",
        "model": "starter:oak",
        "sampling": SAMPLING,
        "optimizer": {"learning_rate": RATE, "schedule": "constant", "warmup_fraction": 0.0},
    }
    return parse_config(
        {
            "agents": [agent],
            "problems": {
                "dataset": dataset,
                "seed": 2026,
                "train": PROMPTS * steps,
                "validation": 0,
                "test": 0,
            },
            "search": {"max_depth": 1, "nodes_per_tree": GROUP, "nodes_in_flight": GROUP},
            "credit": {"advantage": "grpo", "shaping_gamma": 0.0, "dynamic_filter": False},
            "loss": {
                "policy": "ppo",
                "aggregation": "sequence_mean",
                "clip_low": 0.2,
                "clip_high": 0.2,
                "kl_coefficient": 0.0,
                "importance_correction": False,
            },
            "training": {
                "steps": steps,
                "trees_per_step": PROMPTS,
                "checkpoint_every": 10**6,
                "validate_every": 10**6,
            },
            "sandbox": {"workers": 2, "cpu_seconds": 10, "wall_seconds": 20},
            "compute": {"device": "cpu", "threads_per_agent": threads, "lanes": 1},
        }
    )


def _engine_steps(run: RunConfig) -> list[dict[str, float]]:
    """Runs the engine; returns from its log the seconds of steps and of their parts, and tokens."""
    with tempfile.TemporaryDirectory() as directory:
        run_dir = Path(directory)
        (run_dir / "config.json").write_text(run.model_dump_json())
        done = subprocess.run(
            [sys.executable, "-m", "engine", "train", str(run_dir)],
            capture_output=True, text=True, env=os.environ | {"RAY_ADDRESS": ""},
        )  # fmt: skip
        events = list(read_all(run_dir))
        if done.returncode:
            messages = [event.payload["message"] for event in events if event.kind == "error"]
            why = (messages or [done.stderr[-2000:]])[-1]
            raise RuntimeError(f"the engine ended with {done.returncode}: {why}")
    ends = [event for event in events if event.kind == "step.end"]
    before = next(event.time for event in events if event.kind == "step.start")
    steps = []
    for event in ends:
        phases = event.payload["phases"]
        steps.append({"sync": 0.0, **phases, "step": event.time - before})
        steps[-1]["tokens"] = event.payload["tokens"] / event.payload["nodes"]
        before = event.time
    return steps


def _check_same_work(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> None:
    mine, other = _mean(ours, "tokens"), _mean(theirs, "tokens")
    if len(ours) != len(theirs) or abs(mine - other) > 0.1 * other:
        raise RuntimeError(
            f"not the same work: {len(ours)} steps of {mine:.1f} tokens per answer, "
            f"TRL {len(theirs)} of {other:.1f}"
        )


def _ratio(ours: list[dict[str, float]], theirs: list[dict[str, float]], phase: str) -> float:
    return round(_median(theirs, phase) / _median(ours, phase), 2)


def _mean(steps: list[dict[str, float]], figure: str) -> float:
    return statistics.mean(step[figure] for step in steps)


def _median(steps: list[dict[str, float]], phase: str) -> float:
    """Returns the median of a phase, or of the `rest` of a step without its verification."""
    if phase == "rest":
        return statistics.median(step["step"] - step["verify"] for step in steps)
    return statistics.median(step[phase] for step in steps)
