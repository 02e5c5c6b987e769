"""The verb `grove mirror`: follows a run to its end, and writes what it says to another tracker.

Waits: for the end of the run, without a deadline, as `grove watch`. The run knows nothing of it: a
tracker that fails ends the mirror with a sentence, and the same command continues where it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from webapp.client import login
from webapp.client.client import Grove
from webapp.client.extras import needed
from webapp.client.mirrors import TRACKERS, Entry, Mirrored, Tracker
from webapp.client.mirrors.entries import TOPICS, TREE_TOPICS, Entries, flat

BATCH = 500
"""Entries of what is stored that are written at once."""
BATCH_SIZE = 16_000_000
"""Characters of images and trees after which a batch ends earlier."""


class MirrorFailed(ValueError):
    """Raised if the tracker does not take what it is given; names it, the cause and the remedy."""


def add_verbs(add: Callable[[str, Any, str], argparse.ArgumentParser]) -> None:
    """Declares the verb; `add` takes name, handler and help."""
    extras = ", ".join(package for package in TRACKERS.values() if package)
    command = add("mirror", _mirror, f"follow a run in another tracker [{extras}]")
    command.add_argument("run")
    command.add_argument("--to", required=True, choices=sorted(TRACKERS), dest="tracker")
    command.add_argument(
        "--into", default="grove", metavar="NAME",
        help="project (wandb, trackio), experiment (mlflow) or folder (tensorboard)",
    )  # fmt: skip


def _mirror(options: argparse.Namespace) -> int:
    if package := TRACKERS[options.tracker]:
        needed(package, package)
    with Grove(*login.credentials()) as grove:
        count, state = mirror(grove, options.run, options.tracker, options.into)
    print(f"{options.run}: {count} events to {options.tracker}, {state}")
    return 0


def mirror(grove: Grove, run_id: str, name: str, into: str) -> tuple[int, str]:
    """Follows a run to its end; returns the number of new events, and the state of its end.

    Raises:
        MirrorFailed: the tracker failed. Refused, httpx.TransportError: the server did.
    """
    run = grove.run(run_id)
    url = f"{str(grove._http.base_url).split('/api/')[0]}/runs/{run.id}/"
    shown = Mirrored(run.id, f"{run.name} {run.number}", url, into, flat(run.config))
    followed = _Followed(name)
    try:
        module = import_module(f"webapp.client.mirrors.{name}")
        tracker = followed.tracker = followed.call(module.Tracker, shown)
        followed.seq = followed.call(tracker.head)
        for entries in _batches(grove, run.id, followed.seq):
            followed.call(tracker.write, entries)
            followed.seq, followed.count = entries[-1].seq, followed.count + len(entries)
        state = grove.run(run.id).state
        followed.call(tracker.end, state)
        return followed.count, state
    except BaseException:
        followed.leave()
        raise


@dataclass
class _Followed:
    """A tracker, and how far it is."""

    name: str
    tracker: Tracker | None = None
    seq: int = 0
    count: int = 0

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls the tracker; whatever its library raises is a `MirrorFailed`."""
        try:
            return function(*arguments)
        except Exception as error:
            cause = f"{type(error).__name__}: {error}".replace("\n", " ")[:500]
            raise MirrorFailed(
                f"{self.name}: {cause}. The run goes on, and nothing is lost: repeat the command, "
                f"which continues after event {self.seq}"
            ) from error

    def leave(self) -> None:
        """Has the tracker store what it holds in memory, after an interruption or a failure."""
        if self.tracker is None:
            return
        try:
            self.tracker.end("")
        except Exception as error:  # the first cause is shown, too
            print(f"grove: not everything could be stored: {error}", file=sys.stderr)


def _batches(grove: Grove, run_id: str, after: int) -> Iterator[list[Entry]]:
    """Yields the entries that are stored in batches, then each as it comes."""
    entries = _entries(grove, run_id, after)
    batch: list[Entry] = []
    size = 0
    for event in grove.events(run_id, after, TOPICS):
        after = event.seq
        if entry := entries.of(event):
            batch.append(entry)
            size += entry.size
        if len(batch) == BATCH or size > BATCH_SIZE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
    for event in grove.watch(run_id, after, TOPICS):
        if entry := entries.of(event):
            yield [entry]


def _entries(grove: Grove, run_id: str, after: int) -> Entries:
    """Returns the maker of entries after a seq: it knows the trees that are open there."""
    entries = Entries()
    if after:
        for event in grove.events(run_id, 0, TREE_TOPICS):
            if event.seq > after:
                break
            entries.of(event)
    return entries
