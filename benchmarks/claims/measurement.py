"""Measurement of one cell: runs its stages and gathers figures, budgets and conditions."""

from __future__ import annotations

import datetime
import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from benchmarks.claims.budgets import parameters, training_budget
from benchmarks.claims.cell import Cell, CellResult, recipe_hash
from benchmarks.claims.figures import attempts_key, readings_key
from benchmarks.claims.odds import attempt_counts
from benchmarks.claims.repairs import repair_figures
from benchmarks.claims.stages import Workplace, evaluate, models_of, train, train_reward_model
from benchmarks.claims.updates import update_figures
from benchmarks.conditions import commit, machine
from engine.evaluation.measurement import mean
from engine.events.log import read_all
from engine.problems.generator.underspecified import readings_of
from engine.run.summary import RunDigest

PACKAGE = "grove-rl"
LIBRARIES = ("torch", "transformers", "ray", "numpy")
PASS_AT = (1, 2, 4, 8)


def measured(cell: Cell, place: Workplace) -> CellResult:
    """Runs what is left of a cell; returns its result.

    Raises:
        StageFailed: a stage failed; contains the first cause.
    """
    figures: dict[str, float | None] = {}
    budget: dict[str, float] = {}
    seconds: dict[str, float] = {}
    resumed = 0
    if cell.arm.trained:
        run_dirs = [train(one, place) for one in cell.trainings]
        resumed = sum(RunDigest.of(run_dir).resumed for run_dir in run_dirs)
        counts = Counter[str]()
        for run_dir in run_dirs:
            counts.update(asdict(training_budget(read_all(run_dir))))
        seconds["training"] = round(counts.pop("seconds"), 2)
        refined = counts.pop("refined")
        figures["training/refined"] = refined / counts["nodes"] if counts["nodes"] else None
        budget |= counts
        if len(run_dirs) == 1:
            events = list(read_all(run_dirs[0]))
            figures |= repair_figures(events) | update_figures(events)
    if cell.arm.search.reward_model:
        train_reward_model(cell, place)
    report = evaluate(cell, place)
    figures |= evaluation_figures(report)
    budget |= _answers(report)
    budget["parameters"] = parameters(cell.config, models_of(cell, place))
    seconds["evaluation"] = report["seconds"]
    figures["learned_tokens"] = budget.get("learned_tokens")
    figures["seconds"] = round(sum(seconds.values()), 2)
    return CellResult(
        claim=cell.claim.name,
        arm=cell.arm.name,
        seed=cell.seed,
        digest=cell.digest,
        plan=asdict(cell.plan),
        recipe=cell.arm.recipe,
        recipe_version=cell.config.recipe_version,
        recipe_sha256=recipe_hash(cell.arm.recipe),
        config=cell.config.model_dump(mode="json"),
        evaluation=cell.evaluation(),
        figures=figures,
        budget=budget,
        seconds=seconds,
        resumed=resumed,
        **conditions(),
    )


def conditions() -> dict[str, Any]:
    """Returns version, libraries, machine and time of a result."""
    libraries = {name: version(name) for name in LIBRARIES}
    return {
        "grove": version(PACKAGE),
        "commit": commit(),
        "versions": libraries | {"python": platform.python_version()},
        "machine": machine(),
        "finished_at": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S"),
    }  # fmt: skip


def evaluation_figures(report: dict[str, Any]) -> dict[str, float | None]:
    """Returns the figures of a report that claims compare; `pass@K` is that of the whole team."""
    values = {name: figure["value"] for name, figure in report["figures"].items()}
    alone = [name.partition("/")[2] for name in values if name.startswith("pass@1/")]
    team = "team" if "team" in alone else alone[0]
    figures = {f"pass@{k}": values.get(f"pass@{k}/{team}") for k in PASS_AT}
    figures |= {f"pass@1/{name}": values[f"pass@1/{name}"] for name in alone}
    figures |= {
        name: value
        for name, value in values.items()
        if name in ("tree/refined",)
        or name.partition("/")[2] in ("pass@1", "pass@n", "effective_clusters")
    }
    return figures | _by_readings(report) | _attempts(report)


def _by_readings(report: dict[str, Any]) -> dict[str, float | None]:
    """Returns what the search and the samples select right, by the number of readings."""
    rows: dict[int, list[Mapping[str, float | None]]] = {}
    for problem in report["problems"]:
        if (readings := readings_of(problem["id"])) is not None:
            rows.setdefault(readings, []).append(problem["values"])
    return {
        readings_key(name, readings): mean([values.get(name) for values in of_count])
        for name in ("tree/pass@1", "samples/pass@1")
        for readings, of_count in sorted(rows.items())
    }


def _attempts(report: dict[str, Any]) -> dict[str, float | None]:
    """Returns the counts of fresh answers and repairs, over all problems and by readings."""
    rows: dict[int | None, list[Mapping[str, Any]]] = {None: report["problems"]}
    for problem in report["problems"]:
        if (readings := readings_of(problem["id"])) is not None:
            rows.setdefault(readings, []).append(problem)
    counts: dict[str, float | None] = {}
    for readings, problems in rows.items():
        for name, count in attempt_counts(problems).items():
            key = attempts_key(name)
            counts[key if readings is None else readings_key(key, readings)] = count
    return counts


def _answers(report: dict[str, Any]) -> dict[str, float]:
    """Returns the number of answers behind each part of an evaluation, by `answers_key`."""
    figures = report["figures"]
    alone = next(name for name in reversed(figures) if name.startswith("pass@1/"))
    parts = {"single": alone, "tree": "tree/pass@1", "samples": "samples/pass@1"}
    answers = {f"{part}_answers": figures[name]["nodes"] for part, name in parts.items()}
    return answers | {"evaluation_tokens": report["tokens"]}
