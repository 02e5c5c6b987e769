"""`python -m engine evaluate` and `compare`: figures of a team, and differences of two results.

Exit status: 0, or 2 if nothing could be measured or compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.progress import LINE_SECONDS, Progress
from engine.cli.search import (
    STARTING,
    add_agents,
    check_writable,
    count,
    inference_settings,
    seconds,
    started_team,
)
from engine.config.schema import RunConfig
from engine.problems.problem import Problem
from engine.recipes import parse_override
from engine.resources.whole_files import save_json

if TYPE_CHECKING:
    from engine.evaluation.measurement import Measurement

GENERATED = "generated"
SAMPLES, NODES, IN_FLIGHT, GENERATED_PROBLEMS = 1, 8, 4, 300
UNUSED = {
    "search.nodes_per_tree": "evaluation.tree_nodes (--nodes)",
    "search.nodes_in_flight": "evaluation.nodes_in_flight",
}
"""Settings of a search that an evaluation replaces, and by what."""


def add_evaluate(command: Any) -> None:
    """Declares the arguments of `evaluate`."""
    add_agents(command)
    command.add_argument(
        "--dataset", required=True, metavar="DATASET",
        help="a file or folder of problems, hf:ORG/NAME@REVISION, or `generated` (its seed: --set "
        "problems.seed=N)",
    )  # fmt: skip
    command.add_argument("--problems", type=count, metavar="N", help="measure only N of them")
    command.add_argument(
        "--samples", type=count, default=SAMPLES, help=f"per problem and agent ({SAMPLES})"
    )
    command.add_argument("--nodes", type=count, default=NODES, help=f"budget per tree ({NODES})")
    command.add_argument("--no-search", action="store_true", help="independent samples only")
    command.add_argument("--against", type=Path, metavar="RESULT", help="compare with this result")
    command.add_argument(
        "--json", type=Path, metavar="FILE", help="write the result, to be compared; - for stdout"
    )
    command.add_argument(
        "--progress-seconds", type=seconds, default=LINE_SECONDS, metavar="SECONDS",
        help=f"time between lines of progress where stderr is no terminal ({LINE_SECONDS:.0f})",
    )  # fmt: skip
    command.set_defaults(run=_evaluate)


def add_compare(command: Any) -> None:
    """Declares the arguments of `compare`."""
    command.add_argument("first", type=Path, metavar="A", help="a result of `evaluate --json`")
    command.add_argument("second", type=Path, metavar="B")
    command.add_argument("--confidence", type=_confidence, default=0.95)
    command.add_argument("--json", action="store_true", help="one JSON object, for machines")
    command.set_defaults(run=_compare)


def _confidence(text: str) -> float:
    confidence = float(text)  # argparse reports what is not a number
    if not 0 < confidence < 1:
        raise argparse.ArgumentTypeError(f"{text}: give a share between 0 and 1, e.g. 0.95")
    return confidence


@dataclass(frozen=True)
class _ProblemSet:
    """Problems of an evaluation and their description for the result."""

    problems: list[Problem]
    about: dict[str, Any]


def _evaluate(arguments: argparse.Namespace) -> int:
    from engine.evaluation.figures import compare, read_report, report

    against = read_report(arguments.against) if arguments.against else None
    config = _config(arguments)
    problem_set = _problems(arguments, config)
    to_stdout = str(arguments.json) == "-"
    if arguments.json and not to_stdout:
        check_writable(arguments.json)
    if note := temperature_note(config):
        print(note, file=sys.stderr)
    measured, long = _measured(arguments, config, problem_set.problems)
    for problem, why in long:
        print(f"left out: {_left_out(problem, why)}", file=sys.stderr)
    dataset = _measured_set(problem_set, measured, len(long))
    result = report(measured, {"dataset": dataset, **_about(config)})
    if against:
        result["against"] = {"file": str(arguments.against), **compare(against, result)}
    if to_stdout:
        print(json.dumps(result))
        return 0
    _print_figures(result)
    if against:
        _print_comparison(result["against"])
    if arguments.json:  # last: a full disk takes no figures away
        save_json(arguments.json, result)
    return 0


def _measured(
    arguments: argparse.Namespace, config: RunConfig, problems: list[Problem]
) -> tuple[Measurement, list[tuple[Problem, str]]]:
    """Returns the measurement, and the problems that it leaves out, each with the reason."""
    from engine.evaluation.measurement import measure, samples_planned
    from engine.rollout.long_statements import divided_by_length

    search = not arguments.no_search
    planned = samples_planned(config, len(problems), search=search)
    progress = Progress(STARTING, arguments.progress_seconds)
    with started_team(config, "measuring", progress, planned) as (team, scorer):
        fitting, long = divided_by_length(problems, team.too_long)
        if not fitting:
            raise ValueError(f"no problem is left: {_left_out(*long[0])}")
        seed = [config.seed, 0xEA1]
        return measure(team, config, fitting, seed, search=search, scorer=scorer), long


def _measured_set(problem_set: _ProblemSet, measured: Measurement, long: int) -> dict[str, Any]:
    """Returns the description of the problems that were measured: without the `long` ones."""
    from engine.problems.identity import set_hash

    if not long:
        return problem_set.about
    return {
        **problem_set.about,
        "problems": len(measured.problems),
        "hash": set_hash(measured.problems),
        "left_out": problem_set.about["left_out"] + long,
    }


def _left_out(problem: Problem, why: str) -> str:
    return f"{ascii(problem.id)[1:-1]}: its statement {why}"


def temperature_note(config: RunConfig) -> str:
    """Returns the agents whose own temperature an evaluation does not use; empty if all agree."""
    used = config.evaluation.temperature
    other = {agent.name: agent.sampling.temperature for agent in config.agents}
    differing = [f"{name} ({value:g})" for name, value in other.items() if value != used]
    if not differing:
        return ""
    return (
        f"note: answers are sampled at evaluation.temperature = {used:g}, not at "
        f"sampling.temperature of {', '.join(differing)}; to change it: "
        "--set evaluation.temperature=NUMBER"
    )


def _config(arguments: argparse.Namespace) -> RunConfig:
    _refuse_unused(arguments.overrides)
    options = {
        "evaluation.samples_per_problem": arguments.samples,
        "evaluation.tree_nodes": arguments.nodes,
        "evaluation.nodes_in_flight": min(IN_FLIGHT, arguments.nodes),
        "problems.dataset": arguments.dataset,
        "problems.format": arguments.format,
    }
    return inference_settings(arguments, options)


def _refuse_unused(overrides: Sequence[str]) -> None:
    for path, _ in map(parse_override, overrides):
        if path in UNUSED:
            raise ValueError(f"--set {path}: an evaluation's trees take {UNUSED[path]}; set that")


def _problems(arguments: argparse.Namespace, config: RunConfig) -> _ProblemSet:
    """Returns the problems in an order that depends only on their content and `problems.seed`."""
    from engine.hub.pins import pinned_reference
    from engine.hub.reference import RepoType
    from engine.problems.generator import GeneratedProblems, Split
    from engine.problems.identity import set_hash
    from engine.problems.load import load_dataset
    from engine.problems.splits import shuffled

    seed, left_out = config.problems.seed, 0
    path = pinned_reference(arguments.dataset, RepoType.DATASET)
    if path == GENERATED:
        number = arguments.problems or GENERATED_PROBLEMS
        problems = GeneratedProblems.of(config.problems).first(Split.TEST, number)
    else:
        dataset = load_dataset(path, config.problems.format)
        left_out = len(dataset.left_out)
        problems = shuffled(dataset.problems, seed)[: arguments.problems]
    about = {
        "path": path,
        "seed": seed,
        "problems": len(problems),
        "hash": set_hash(problems),
        "left_out": left_out,
    }
    return _ProblemSet(problems, about)


def _about(config: RunConfig) -> dict[str, Any]:
    parts = ("seed", "search", "evaluation", "inference", "sandbox")
    dumped = config.model_dump(mode="json")
    return {
        "agents": {agent.name: agent.model for agent in config.agents},
        "settings": {
            **{part: dumped[part] for part in parts},
            "sampling": {agent["name"]: agent["sampling"] for agent in dumped["agents"]},
        },
    }


def _compare(arguments: argparse.Namespace) -> int:
    from engine.evaluation.figures import compare, read_report

    first, second = read_report(arguments.first), read_report(arguments.second)
    comparison = compare(first, second, confidence=arguments.confidence)
    if arguments.json:
        print(json.dumps(comparison))
    else:
        _print_comparison(comparison)
    return 0


def _print_figures(result: Mapping[str, Any]) -> None:
    rows = [
        (
            name,
            _number(figure["value"]),
            _number(figure["standard_error"]),
            *(f"{figure[key]:,}" for key in ("problems", "nodes", "tokens")),
            f"{figure['seconds']:.1f}",
        )
        for name, figure in result["figures"].items()
    ]
    titles = ("figure", "value", "± 1 s.e.", "problems", "nodes", "tokens", "seconds")
    dropped = result["nodes_dropped"]
    end = f"{result['nodes']:,} answers, {result['tokens']:,} tokens, {result['seconds']:.1f} s"
    _print_table(titles, rows, f"{end}; {dropped} could not be verified" if dropped else end)


def _print_comparison(comparison: Mapping[str, Any]) -> None:
    rows = [
        (
            name,
            _number(figure["first"]),
            _number(figure["second"]),
            f"{figure['difference']:+.4f}",
            f"[{figure['low']:+.4f}, {figure['high']:+.4f}]",
            str(figure["problems"]),
        )
        for name, figure in comparison["figures"].items()
    ]
    interval = f"{comparison['confidence']:.0%} interval"
    titles = ("figure", "first", "second", "difference", interval, "problems")
    end = f"{comparison['problems']} problems in common"
    for key, name in (("only_in_first", "the first"), ("only_in_second", "the second")):
        if comparison[key]:
            end += f"; {comparison[key]} only in {name}"
    _print_table(titles, rows, end)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"


def _print_table(titles: Sequence[str], rows: Sequence[Sequence[str]], end: str) -> None:
    """Prints aligned columns; figures are never truncated, however narrow the terminal."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        name, *numbers = row
        cells = [name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])]
        print("  ".join(cells).rstrip())
    print(end)
