"""All measurements in sequence, each in a process of its own, and the page of the docs.

Every result is appended to `docs/benchmarks.json` with its conditions, and the page is written from
it after each measurement. A measurement whose peer is not installed is reported as left out; one
that fails is reported with the last line of its error, and the others still run. At the end the
missed goals are listed. Exit status: 0 if every goal was met, 1 if a measurement failed, 4 if all
succeeded and a goal was missed.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import shlex
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import MEASUREMENTS
from benchmarks.conditions import ROOT, commit, load, machine
from benchmarks.record import Measurement, Record, load_record
from benchmarks.table import document

SUMMARY = "every measurement, and the page of the docs"
GOALS: dict[str, Any] = {}
MISSING = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=sorted(MEASUREMENTS), metavar="NAME",
                        help="measure only these; their earlier rows are kept")  # fmt: skip
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "docs" / "benchmarks.md",
        help="the page, its record next to it (default: docs/benchmarks.md)",
    )
    parser.add_argument("--minutes", type=float, default=20, help="limit of each measurement")
    parser.add_argument(
        "--with",
        dest="options",
        default="",
        metavar="OPTIONS",
        help='of each measurement, as --with="--rounds 1"; its rows say so',
    )
    parser.add_argument("--render", action="store_true",
                        help="measure nothing, write the page from the record")  # fmt: skip


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Returns ratios and versions of all, as NAME.RATIO; figures are the seconds of each.

    Raises:
        NotWritten: the record is not as this program wrote it.
    """
    record = load_record(arguments.out.with_suffix(".json"))
    names = [] if arguments.render else arguments.only or list(MEASUREMENTS)
    measured = []
    for name in names:
        print(f"measuring {name}", file=sys.stderr, flush=True)
        one = _measured(name, arguments.options, 60 * arguments.minutes)
        result = one.failed or one.left_out or json.dumps(one.ratios)
        print(f"{name}: {one.seconds:.0f} s, {result}", file=sys.stderr, flush=True)
        measured.append(one)
        record.add(one)
        # After each of them, so that an interruption loses no finished rows.
        _write(record, arguments.out)
    if not names:
        _write(record, arguments.out)
    _report_missed(measured)
    return {
        "ratios": _all_of("ratios", measured),
        "figures": _figures(measured),
        "versions": _all_of("versions", measured),
    }


def _write(record: Record, page: Path) -> None:
    record.save(page.with_suffix(".json"))
    page.write_text(document(record), "utf-8")


def _measured(name: str, options: str, limit: float) -> Measurement:
    """Runs one measurement in a process of its own; returns it with its conditions."""
    module = importlib.import_module(f"benchmarks.{MEASUREMENTS[name]}")
    at = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
    code, before, started = commit(), load(), time.perf_counter()
    result = _result(name, options, limit)
    return Measurement(
        name=name,
        measured_at=at,
        seconds=round(time.perf_counter() - started, 1),
        machine=machine(),
        commit=code,
        load_before=before.to_dict(),
        load_after=load().to_dict(),
        options=options,
        about=module.__doc__.strip(),
        goals={ratio: asdict(goal) for ratio, goal in module.GOALS.items()},
        **result,
    )


def _result(name: str, options: str, limit: float) -> dict[str, Any]:
    """Returns {"ratios", "figures", "versions"}, or {"failed"} or {"left_out"} with the reason."""
    command = [sys.executable, "-m", "benchmarks", name, "--json", *shlex.split(options)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"failed": f"it took more than {limit / 60:g} minutes (--minutes)"}
    if (done.stdout.splitlines() or [""])[-1].startswith("{"):
        result = json.loads(done.stdout.splitlines()[-1])
        failed = {"failed": str(result["figures"]["failed"])} if done.returncode else {}
        return {kind: result[kind] for kind in ("ratios", "figures", "versions")} | failed
    why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    if done.returncode == MISSING:
        return {"left_out": why.removeprefix(f"{name}: ")}
    return {"failed": why}


def _report_missed(measured: list[Measurement]) -> None:
    for one in measured:
        for sentence in one.missed():
            print(f"missed: {sentence}", file=sys.stderr)
        for ratio in one.rows():
            if one.judged(ratio) == "not measured":
                print(f"not measured: {one.name}: {ratio}", file=sys.stderr)


def _figures(measured: list[Measurement]) -> dict[str, Any]:
    figures: dict[str, Any] = {f"{one.name}.seconds": one.seconds for one in measured}
    for kind in ("left_out", "failed"):
        if reasons := {one.name: getattr(one, kind) for one in measured if getattr(one, kind)}:
            figures[kind] = reasons
    if missed := [sentence for one in measured for sentence in one.missed()]:
        figures["missed"] = missed
    return figures


def _all_of(kind: str, measured: list[Measurement]) -> dict[str, Any]:
    return {
        f"{one.name}.{key}": value for one in measured for key, value in getattr(one, kind).items()
    }
