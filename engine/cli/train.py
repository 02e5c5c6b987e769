"""`python -m engine train`: training of the run in a directory.

The exit status is the engine's own (`engine.run.exit_status.ExitCode`), 2 if the run was refused.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.config.log_lines import configure_engine
from engine.run.metrics_server import serving
from engine.run.spans import run_span
from engine.run.summary import RunDigest

_EVERY_SECONDS = 0.5
EVALUATION = "evaluation.json"
"""A run directory with this file is evaluated, not trained."""


def add_arguments(command: Any) -> None:
    """Declares the arguments of `train`."""
    command.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="holds config.json")
    command.add_argument(
        "--lease-seconds",
        type=_seconds,
        help="stop when RUN_DIR/lease is not touched for this long",
    )
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Trains or evaluates the run and returns its exit status; shows progress on a terminal."""
    run_dir = arguments.run_dir.absolute()
    configure_engine(run_dir.name)
    if (run_dir / EVALUATION).is_file():
        from engine.evaluation.run import evaluate_run

        with serving(run_dir), run_span("evaluate", run_dir.name) as noted:
            return noted(evaluate_run(run_dir, arguments.lease_seconds))
    from engine.training.run import train

    progress = _progress(run_dir) if sys.stderr.isatty() else _nothing()
    with progress, serving(run_dir), run_span("train", run_dir.name) as noted:
        code = noted(train(run_dir, arguments.lease_seconds))
    if arguments.json:
        print(json.dumps(RunDigest.of(run_dir).result()))
    return code


def _seconds(text: str) -> float:
    seconds = float(text)  # argparse reports what is not a number
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{text}: give seconds, more than 0")
    return seconds


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _progress(run_dir: Path) -> Iterator[None]:
    """Shows the line of the run's digest while the block runs.

    A thread follows the log, as the site does: the trainer knows nothing of its observers.
    """
    from rich.console import Console

    done = threading.Event()
    digest = RunDigest(run_dir)
    with Console(stderr=True).status("starting") as status:

        def follow() -> None:
            while not done.wait(_EVERY_SECONDS):
                digest.read()
                status.update(digest.line())

        watcher = threading.Thread(target=follow, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
