"""`python -m engine problems select`: a data set of the problems that a team solves sometimes.

A team samples every problem of the sources that is in none of the test sets; the problems that some
of its samples solve and some do not are written as JSONL, with a report on all. After an
interruption the same command continues with the problems that the report lacks. Exit status: 0, or
1 if no problem was selected, 2 if nothing could be measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.progress import LINE_SECONDS, Progress
from engine.cli.search import (
    STARTING,
    add_agents,
    count,
    inference_settings,
    seconds,
    started_team,
)
from engine.config.schema import RunConfig
from engine.problems.overlap import THRESHOLD
from engine.problems.source import GENERATED
from engine.resources.whole_files import check_writable, save_json

if TYPE_CHECKING:
    from engine.evaluation.selection import Selection, Source

SAMPLES = 8
BATCH_SAMPLES = 128
"""Samples between two writes of the report."""


def add_select(actions: Any, share: Any) -> None:
    """Declares `select` among the actions of `problems`; `share` parses a threshold."""
    command = actions.add_parser(
        "select", help="problems that a team solves sometimes, apart from test sets"
    )
    add_agents(command)
    command.add_argument(
        "--dataset", nargs="+", required=True, metavar="DATASET",
        help="files or folders of problems, hf:ORG/NAME@REVISION, or `generated` (training part)",
    )  # fmt: skip
    command.add_argument(
        "--apart-from", nargs="+", default=[], metavar="TESTS",
        help="data sets whose problems must not be selected, also if they are nearly the same",
    )  # fmt: skip
    command.add_argument("--threshold", type=share, default=THRESHOLD, help="as of `overlap`")
    command.add_argument("--problems", type=count, metavar="N", help="at most N of each data set")
    command.add_argument(
        "--most-operations", type=count, metavar="N", help="of a generated problem: 1 is easiest"
    )
    command.add_argument(
        "--samples", type=count, default=SAMPLES, help=f"per problem and agent ({SAMPLES})"
    )
    command.add_argument("--out", type=Path, required=True, metavar="FILE", help="written as JSONL")
    command.add_argument(
        "--report", type=Path, metavar="FILE", help="outcome of every problem (OUT.report.json)"
    )
    command.add_argument("--json", action="store_true", help="print the totals as JSON")
    command.add_argument(
        "--progress-seconds", type=seconds, default=LINE_SECONDS, metavar="SECONDS",
        help=f"time between lines of progress where stderr is no terminal ({LINE_SECONDS:.0f})",
    )  # fmt: skip
    command.set_defaults(run=_select)


def _select(arguments: argparse.Namespace) -> int:
    from engine.cli.evaluate import temperature_note
    from engine.evaluation.selection import Selection, overlaps_with, read_attempts
    from engine.problems.jsonl import save_problems

    config = _config(arguments)
    out: Path = arguments.out
    report_file = arguments.report or out.with_name(f"{out.name}.report.json")
    if report_file == out:
        raise ValueError(f"--report {report_file}: is also --out; name another file")
    sources = [_source(path, arguments, config) for path in arguments.dataset]
    tests = [_source(path, arguments, config, whole=True) for path in arguments.apart_from]
    about = _about(arguments, config, sources, tests)
    attempts = read_attempts(report_file, about)
    selection = Selection(sources, overlaps_with(sources, tests, arguments.threshold), attempts)
    for file in (out, report_file):
        check_writable(file)
    save_json(report_file, selection.report(about))
    if note := temperature_note(config):
        print(note, file=sys.stderr)
    if selection.pending():
        for _ in _measured(selection, config, arguments):
            save_json(report_file, selection.report(about))
    if selected := selection.selected():
        save_problems(out, _with_own_ids(selected))
    _print(arguments, selection.report(about)["totals"])
    return 0 if selected else 1


def _measured(selection: Selection, config: RunConfig, arguments: argparse.Namespace) -> Any:
    """Samples the pending problems; yields after each batch."""
    from engine.evaluation.measurement import measure

    each = arguments.samples * len(config.agents)
    batch, total = max(1, BATCH_SAMPLES // each), each * len(selection.pending())
    progress = Progress(STARTING, arguments.progress_seconds)
    with started_team(config, "measuring", progress, total) as (team, _):
        while pending := selection.pending():
            seed = [config.seed, len(selection.attempts)]
            selection.add(measure(team, config, pending[:batch], seed, search=False))
            yield


def _config(arguments: argparse.Namespace) -> RunConfig:
    options = {
        "evaluation.samples_per_problem": arguments.samples,
        "problems.format": arguments.format,
    }
    return inference_settings(arguments, options)


def _source(
    path: str, arguments: argparse.Namespace, config: RunConfig, *, whole: bool = False
) -> Source:
    """Returns the problems of a data set, in an order that depends on their content and
    `problems.seed`; all of them if `whole`."""
    from engine.evaluation.selection import Source
    from engine.hub.pins import pinned_reference
    from engine.hub.reference import RepoType
    from engine.problems.load import load_dataset
    from engine.problems.splits import shuffled

    if path == GENERATED:
        if whole:
            raise ValueError(f"--apart-from {path}: generated problems have splits of their own")
        return Source(path, _generated(arguments, config))
    reference = pinned_reference(path, RepoType.DATASET)
    problems = load_dataset(reference, config.problems.format).problems
    if whole:
        return Source(reference, problems)
    return Source(reference, shuffled(problems, config.problems.seed)[: arguments.problems])


def _generated(arguments: argparse.Namespace, config: RunConfig) -> list[Any]:
    from itertools import islice

    from engine.problems.generator import GeneratedProblems, Split

    most = arguments.most_operations
    stream = GeneratedProblems.of(config.problems).stream(Split.TRAIN)
    # Of the first problems only, as a run's training part is.
    first = (problem for _, problem in islice(stream, config.problems.train))
    easy = (problem for problem in first if most is None or problem.difficulty <= most)
    return list(islice(easy, arguments.problems))


def _with_own_ids(problems: Sequence[Any]) -> list[Any]:
    """Returns the problems; of those with an id that is taken, with one of their content."""
    from dataclasses import replace

    from engine.problems.identity import content_hash

    taken: set[str] = set()
    result = []
    for problem in problems:
        if problem.id in taken:
            problem = replace(problem, id=f"{problem.id}#{content_hash(problem)[:12]}")
        taken.add(problem.id)
        result.append(problem)
    return result


def _about(
    arguments: argparse.Namespace,
    config: RunConfig,
    sources: Sequence[Source],
    tests: Sequence[Source],
) -> dict[str, Any]:
    from engine.problems.identity import set_hash

    dumped = config.model_dump(mode="json")
    return {
        "agents": {agent.name: agent.model for agent in config.agents},
        "datasets": [
            {"path": one.path, "problems": len(one.problems), "hash": set_hash(one.problems)}
            for one in sources
        ],
        "apart_from": [{"path": one.path, "hash": set_hash(one.problems)} for one in tests],
        "threshold": arguments.threshold,
        "samples": arguments.samples,
        "settings": {
            **{part: dumped[part] for part in ("seed", "evaluation", "sandbox")},
            "sampling": {agent["name"]: agent["sampling"] for agent in dumped["agents"]},
            "roles": {agent["name"]: agent["role"] for agent in dumped["agents"]},
        },
    }


def _print(arguments: argparse.Namespace, totals: dict[str, int]) -> None:
    if arguments.json:
        print(json.dumps({"out": str(arguments.out), **totals}))
        return
    parts = ", ".join(f"{name} {number}" for name, number in totals.items() if number)
    print(f"{parts}; {arguments.out}" if totals["selected"] else f"{parts}; nothing was written")
