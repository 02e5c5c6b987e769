"""`python -m engine problems`: check of a data set, overlap of two, selection, download of one.

Exit status: 0 if there are no findings, 1 if there are, 2 if a data set cannot be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.pull import add_pull
from engine.cli.select import add_select
from engine.config.printable import printable
from engine.hub.reference import RepoType
from engine.problems.errors import DatasetIssue
from engine.problems.formats import DETECTED
from engine.problems.jsonl import save_problems
from engine.problems.load import format_names, load_dataset
from engine.problems.overlap import THRESHOLD, Overlap, overlaps
from engine.resources.machine_cores import machine_cores
from engine.resources.whole_files import check_writable

if TYPE_CHECKING:  # other commands must not import the sandbox and tables
    from engine.problems.check import Finding, Report

_REASON_CHARS = 300


def run(arguments: argparse.Namespace) -> int:
    """Runs the chosen command."""
    return {"check": _check, "overlap": _overlap}[arguments.action](arguments)


def add_arguments(command: Any) -> None:
    """Declares the arguments of `check`, `overlap`, `select` and `pull`."""
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    checking = actions.add_parser("check", help="run the reference of every problem on its tests")
    checking.add_argument("file", type=Path, metavar="FILE",
                          help="a file or folder of problems, or hf:ORG/NAME@REVISION")  # fmt: skip
    checking.add_argument("--keep", type=Path, metavar="OUT", help="write what passes, as JSONL")
    checking.add_argument(
        "--workers", type=_workers, default=machine_cores(), help="programs at once (1-256)"
    )
    checking.add_argument(
        "--progress", action="store_true", help="report progress on stderr, as JSON lines"
    )
    comparing = actions.add_parser("overlap", help="problems of A that are also in B")
    comparing.add_argument("file", type=Path, metavar="A")
    comparing.add_argument("other", type=Path, metavar="B")
    comparing.add_argument(
        "--threshold",
        type=_share,
        default=THRESHOLD,
        help="share of n-grams that is too much (0-1)",
    )
    for action in (checking, comparing):
        action.add_argument("--format", default=DETECTED, choices=format_names())
        action.add_argument("--json", action="store_true", help="one JSON object, for machines")
        action.set_defaults(run=run)
    add_select(actions, _share)
    add_pull(actions, RepoType.DATASET, "a data set")


def _workers(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= 256):
        raise argparse.ArgumentTypeError(f"{text}: give a whole number from 1 to 256")
    return int(text)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text}: give a number above 0, at most 1")
    return share


def _check(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from engine.config.sandbox import SandboxConfig
    from engine.problems.check import check
    from engine.sandbox.host.sandbox import Sandbox
    from engine.sandbox.host.self_check import self_check
    from engine.sandbox.host.verify import verify

    dataset = load_dataset(arguments.file, arguments.format)
    if arguments.keep:
        check_writable(arguments.keep)
    with (
        Sandbox(SandboxConfig(workers=arguments.workers)) as sandbox,
        Console(stderr=True).status("checking") as status,
    ):
        self_check(sandbox)
        total = len(dataset.problems)
        report = check(
            dataset,
            partial(verify, sandbox),
            lambda done: _report_progress(status, arguments, done, total),
        )
        cuts = sandbox.caps.cuts(SandboxConfig(), dataset.problems)
    if arguments.json:
        print(json.dumps({**_report_data(arguments.file, report), "cuts": cuts}))
    else:
        _print_report(arguments.file, report)
        print(*cuts, sep="\n", end="\n" if cuts else "")
    if arguments.keep:  # last: a full disk takes no report away
        save_problems(arguments.keep, report.passed)
    return 0 if report.clean else 1


def _report_progress(status: Any, arguments: argparse.Namespace, done: int, total: int) -> None:
    if arguments.progress:
        print(json.dumps({"done": done, "total": total}), file=sys.stderr, flush=True)
    else:
        status.update(f"checked {done} of {total}")


def _report_data(file: Path, report: Report) -> dict[str, Any]:
    return {
        "file": str(file),
        "format": report.format,
        "totals": _totals(report),
        "failed": [_finding_data(finding) for finding in report.failed],
        "unverified": [_finding_data(finding) for finding in report.unverified],
        "left_out": [
            {"file": f.file, "line": f.line, "field": f.field, "reason": f.remedy}
            for f in report.left_out
        ],
    }


def _finding_data(finding: Finding) -> dict[str, Any]:
    return {**asdict(finding.place), **asdict(finding), "place": str(finding.place)}


def _totals(report: Report) -> dict[str, int]:
    passed, failed, unverified = map(len, (report.passed, report.failed, report.unverified))
    return {
        "problems": passed + failed + unverified,
        "tests": report.tests,
        "passed": passed,
        "failed": failed,
        "unverified": unverified,
        "left_out": len(report.left_out),
    }


def _print_report(file: Path, report: Report) -> None:
    rows = [
        (str(finding.place), finding.id, finding.verdict, f"{finding.passed:.0%}", finding.reason)
        for finding in (*report.failed, *report.unverified)
    ]
    rows += [
        (_location(error), "", "left out", "", f"{error.field}: {error.remedy}")
        for error in report.left_out
    ]
    counts = ", ".join(
        f"{name.replace('_', ' ')} {count}" for name, count in _totals(report).items()
    )
    titles = ("location", "problem", "outcome", "tests passed", "reason")
    _print(titles, rows, f"{file} ({report.format}): {counts}")


def _location(error: DatasetIssue) -> str:
    return f"{error.file}:{error.line}" if error.line else error.file


def _print(titles: Sequence[str], rows: Sequence[Sequence[str]], end: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if rows:
        table = Table(*titles)
        for row in rows:
            # As `Text`, since untrusted strings may look like markup.
            table.add_row(
                *(Text(_printable(cell, console.encoding), overflow="fold") for cell in row)
            )
        console.print(table)
    console.print(Text(_printable(end, console.encoding)))


def _printable(text: str, encoding: str) -> str:
    """Returns the start of a text, with escapes for what the terminal's encoding lacks and for what
    would steer it."""
    shown = printable(text[:_REASON_CHARS])
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def _overlap(arguments: argparse.Namespace) -> int:
    first, second = (
        load_dataset(path, arguments.format) for path in (arguments.file, arguments.other)
    )
    overlapping = overlaps(first.problems, second.problems, arguments.threshold)
    if arguments.json:
        print(json.dumps(_overlap_data(arguments, len(first.problems), overlapping)))
        return 1 if overlapping else 0
    titles = (str(arguments.file), str(arguments.other), "same", "share")
    rows = [(one.first, one.second, one.kind, f"{one.share:.0%}") for one in overlapping]
    end = f"{len(overlapping)} of {len(first.problems)} problems are also in {arguments.other}"
    _print(titles, rows, end)
    return 1 if overlapping else 0


def _overlap_data(
    arguments: argparse.Namespace, count: int, overlapping: Sequence[Overlap]
) -> dict[str, Any]:
    return {
        "first": str(arguments.file),
        "second": str(arguments.other),
        "problems": count,
        "overlapping": len(overlapping),
        "overlaps": [asdict(overlap) for overlap in overlapping],
    }
