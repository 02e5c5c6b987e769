"""`python -m engine models`: models that come from elsewhere.

Exit status: 0 if it is done, 2 if a file cannot be used.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.cli.pretrained import add_add, add_list
from engine.cli.pull import add_pull
from engine.hub.reference import RepoType


def add_arguments(command: Any) -> None:
    """Declares the actions, each with its own arguments and function."""
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_import(actions)
    add_pull(actions, RepoType.MODEL, "a model")
    add_add(actions)
    add_list(actions)


def _add_import(actions: Any) -> None:
    command = actions.add_parser("import", help="convert a GGUF file to a model that trains")
    command.add_argument("file", type=Path, metavar="FILE.gguf")
    command.add_argument("directory", type=Path, metavar="DIR", help="a new directory")
    command.add_argument(
        "--json-progress",
        action="store_true",
        help='print progress on stdout, one object per line: {"progress": 0..1}',
    )
    command.set_defaults(run=_import)


def _import(arguments: argparse.Namespace) -> int:
    from engine.policy.models.gguf.convert import convert

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leaves no remains
    progress = _json_progress() if arguments.json_progress else _shown_progress()
    convert(arguments.file, arguments.directory, progress)
    if not arguments.json_progress:
        print(arguments.directory)
    return 0


def _json_progress() -> Callable[[float], None]:
    """Returns a function that prints each full percent once."""
    reported = -1

    def report(share: float) -> None:
        nonlocal reported
        if int(share * 100) > reported:
            reported = int(share * 100)
            print(json.dumps({"progress": round(share, 4)}), flush=True)

    return report


def _shown_progress() -> Callable[[float], None] | None:
    if not sys.stderr.isatty():
        return None

    def report(share: float) -> None:
        print(f"\r{share:4.0%}", end="\n" if share == 1 else "", file=sys.stderr, flush=True)

    return report
