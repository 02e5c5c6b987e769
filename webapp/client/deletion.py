"""The verb that deletes runs of a server: it says what goes, then needs one confirmation.

Invariant: nothing is deleted unless every run may be; without a terminal `--yes` has to be given.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

from webapp.client import login
from webapp.client.client import Grove
from webapp.client.rest.models import DeletionPlanOut


def add_verbs(add: Callable[[str, Any, str], argparse.ArgumentParser]) -> None:
    """Declares the verb; `add` takes name, handler and help."""
    command = add("delete-run", _delete, "delete runs that have ended, with everything of them")
    command.add_argument("runs", nargs="+", metavar="RUN")
    command.add_argument("--yes", action="store_true", help="delete without a question")


def described(plan: DeletionPlanOut) -> str:
    """What is deleted with a run, in one line."""
    counts = [
        (plan.events, "events"),
        (plan.metrics, "metrics"),
        (plan.comments, "comments"),
        (plan.shares, "share links"),
        (plan.stars, "stars"),
    ]
    size = plan.folder_bytes + plan.version_bytes
    parts = [f"{size:,} bytes of files", *(f"{number} {what}" for number, what in counts if number)]
    parts += [f"model version {version}" for version in plan.versions]
    parts += [f"evaluation {plan.evaluation}"] if plan.evaluation else []
    parts += ["its experiment"] if plan.experiment else []
    kept = f"; what stays: {'; '.join(plan.kept)}" if plan.kept else ""
    return f"{plan.name}: {', '.join(parts)}{kept}"


def _delete(options: argparse.Namespace) -> int:
    with Grove(*login.credentials()) as grove:
        refused, runs = False, [_id_of(text) for text in options.runs]
        for run in runs:
            plan = grove.rest.get_run_deletion(run)
            print(described(plan), file=sys.stderr)
            for reason in plan.refusals:
                print(f"grove: {plan.name} cannot be deleted: {reason}", file=sys.stderr)
                refused = True
        if refused:
            return 1
        if not options.yes and not _confirmed(len(runs)):
            return 1
        for run in runs:
            grove.rest.delete_run(run)
            print(run)
    return 0


def _id_of(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise ValueError(f"{text!r} is no id of a run; grove runs lists them") from None


def _confirmed(number: int) -> bool:
    if not sys.stdin.isatty():
        raise ValueError("nothing is deleted: give --yes where no terminal answers")
    what = "this run" if number == 1 else f"these {number} runs"
    print(f"Delete {what} for good? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
