"""`python -m engine same`: comparison of two runs' figures and weights, bit for bit.

The exit status is 0 if they are the same, 1 if they differ, 2 if one of them cannot be read.
"""

from __future__ import annotations

import argparse
import json
from itertools import zip_longest
from pathlib import Path
from typing import Any

from engine.events.log import FILE_NAME, read_all
from engine.events.timeline import figures
from engine.run.checkpoint import sha256_of

_SHOWN_CHARS = 300


def add_arguments(command: Any) -> None:
    """Declares the arguments of `same`."""
    command.add_argument("one", type=Path, metavar="RUN_DIR")
    command.add_argument("other", type=Path, metavar="RUN_DIR")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compares two runs and prints their first difference."""
    difference = first_difference(arguments.one, arguments.other)
    if arguments.json:
        print(json.dumps({"same": difference is None, "difference": difference}))
    else:
        print(difference or "the same figures and the same weights, bit for bit")
    return 0 if difference is None else 1


def first_difference(one: Path, other: Path) -> str | None:
    """Returns the first difference of two runs, or None. Times, ids of trees and events that a
    resume voided do not count (`engine.events.timeline`).

    Raises:
        ValueError: a directory holds no run.
    """
    pairs = zip_longest(_figures(one), _figures(other))
    for number, (first, second) in enumerate(pairs, start=1):
        if first != second:
            return f"figure {number}: {_shown(first)} and {_shown(second)}"
    first, second = _weights(one), _weights(other)
    for name in sorted(first | second):
        if first.get(name) != second.get(name):
            return f"models/{name}: SHA-256 {first.get(name)} and {second.get(name)}"
    return None


def _figures(run_dir: Path) -> list[Any]:
    if not (run_dir / FILE_NAME).is_file():
        raise ValueError(f"{run_dir} holds no {FILE_NAME}; give the directory of a run")
    return figures(read_all(run_dir))


def _weights(run_dir: Path) -> dict[str, str]:
    folder = run_dir / "models"
    return {
        str(file.relative_to(folder)): sha256_of(file) for file in folder.rglob("*.safetensors")
    }


def _shown(figure: Any) -> str:
    text = "nothing more" if figure is None else str(figure)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
