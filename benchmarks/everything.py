"""All measurements, one after the other, each in a process of its own, and the table of the docs.

A measurement whose peer is not installed is named as left out; one that fails is named with the
last line of its error, the others are measured all the same, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import MEASUREMENTS
from benchmarks.table import document

SUMMARY = "every measurement, and the table of the docs"
GOALS: dict[str, Any] = {}
ROOT = Path(__file__).resolve().parents[1]
MISSING = 3


@dataclass(frozen=True)
class Outcome:
    """What one measurement said, or why it said nothing."""

    name: str
    seconds: float
    result: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: str = ""
    failed: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=sorted(MEASUREMENTS), metavar="NAME",
                        help="measure only these")  # fmt: skip
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md",
                        help="where the table goes (default: docs/benchmarks.md)")  # fmt: skip
    parser.add_argument("--minutes", type=float, default=20, help="limit of each measurement")


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Ratios and versions of all, as NAME.RATIO; figures are the seconds that each took."""
    outcomes = []
    for name in arguments.only or MEASUREMENTS:
        print(f"measuring {name}", file=sys.stderr, flush=True)
        outcome = _outcome(name, 60 * arguments.minutes)
        told = outcome.failed or outcome.left_out or json.dumps(outcome.result["ratios"])
        print(f"{name}: {outcome.seconds:.0f} s, {told}", file=sys.stderr, flush=True)
        outcomes.append(outcome)
        # After each of them: what is cut off late in an hour has its table.
        arguments.out.write_text(document(outcomes), encoding="utf-8")
    figures: dict[str, Any] = {f"{o.name}.seconds": round(o.seconds, 1) for o in outcomes}
    for kind in ("left_out", "failed"):
        if told := {o.name: getattr(o, kind) for o in outcomes if getattr(o, kind)}:
            figures[kind] = told
    return {
        "ratios": _all_of("ratios", outcomes),
        "figures": figures,
        "versions": _all_of("versions", outcomes),
    }


def _outcome(name: str, limit: float) -> Outcome:
    started = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks", name, "--json"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return Outcome(name, limit, failed=f"it took more than {limit / 60:g} minutes (--minutes)")
    seconds = time.perf_counter() - started
    if done.returncode == 0:
        return Outcome(name, seconds, json.loads(done.stdout.splitlines()[-1]))
    why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    if done.returncode == MISSING:
        return Outcome(name, seconds, left_out=why.removeprefix(f"{name}: "))
    return Outcome(name, seconds, failed=why)


def _all_of(kind: str, outcomes: list[Outcome]) -> dict[str, Any]:
    return {
        f"{outcome.name}.{key}": value
        for outcome in outcomes
        for key, value in outcome.result.get(kind, {}).items()
    }
