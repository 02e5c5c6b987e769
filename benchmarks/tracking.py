"""`log` of a program's own tracking against W&B offline, MLflow and Trackio.

A program logs 100,000 numbers, 1,000 steps of 100, with each system's documented call: `grove.log`
and `wandb.log` offline, `trackio.log`, and MLflow's `log_metrics` to a local sqlite store, each in
a process of its own, in turns. Two clocks: `call` is what the training loop waits for, all calls of
`log`; `stored` ends when all numbers are in the system's file, after `finish`. Grove's spool is
synced to the disk by then. After the clocks every system must have stored as many steps, with the
same sum of the numbers. A ratio is the median over rounds of the peer's seconds by Grove's. The
peers have an environment of their own, that of `api`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import at_least
from benchmarks.api import ROOT, peers_python

SUMMARY = "logging from any program, against W&B offline, MLflow and Trackio"
SYSTEMS = ("grove", "wandb", "mlflow", "trackio")
GOALS = {
    f"{clock}_vs_{peer}": at_least(1.2 if peer == "trackio" else 1)
    for clock in ("call", "stored")
    for peer in SYSTEMS[1:]
}
SECONDS = 900.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--numbers", type=int, default=100, help="of each step")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-peers", action="store_true", help="measure Grove alone")


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Returns ratios and figures; raises `PeerMissing` where the peers cannot be installed."""
    python = None if arguments.without_peers else peers_python()
    names = SYSTEMS if python else SYSTEMS[:1]
    rounds: list[dict[str, dict[str, Any]]] = []
    for _ in range(1 + arguments.rounds):  # the first is not counted
        rounds.append({name: _logged(name, python, arguments) for name in names})
        sums = {name: one["sum"] for name, one in rounds[-1].items()}
        assert max(sums.values()) - min(sums.values()) < 1e-6 * abs(sums["grove"]), sums
    counted = rounds[1:]
    ratios = {
        f"{clock}_vs_{peer}": round(
            statistics.median(one[peer][clock] / one["grove"][clock] for one in counted), 2
        )
        for clock in ("call", "stored")
        for peer in names[1:]
    }
    figures = {
        f"{name}_{clock}_ms_per_step": round(
            statistics.median(one[name][clock] for one in counted) / arguments.steps * 1000, 4
        )
        for name in names
        for clock in ("call", "stored")
    }
    versions = {name: rounds[0][name]["version"] for name in names[1:]}
    return {"ratios": ratios, "figures": figures, "versions": versions}


def _logged(name: str, python: Path | None, arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns what one process of a system measured."""
    program = sys.executable if name == "grove" else str(python)
    script = str(ROOT / "benchmarks" / "tracking_peers.py")
    with tempfile.TemporaryDirectory(prefix="grove-bench-") as folder:
        command = [program, script, name, folder, str(arguments.steps), str(arguments.numbers)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=folder)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip()[-800:]}")
    return json.loads(done.stdout.splitlines()[-1])
