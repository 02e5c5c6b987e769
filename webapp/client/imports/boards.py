"""The verb `grove import-tensorboard`: each folder of event files is a run, read once or followed.

Invariant: a run that was begun here is ended here, whatever cuts the import off: the server would
count it as failed.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from webapp.client.imports import tensorboard
from webapp.client.imports.following import Copy, follow
from webapp.client.imports.whole import Target
from webapp.client.tracking.records import LAST_SECOND
from webapp.client.tracking.start import DEFAULT_DIRECTORY

Add = Callable[[str, Any, str], argparse.ArgumentParser]


def add_verb(add: Add) -> None:
    """Declares the verb; `add` takes name, handler and help."""
    command = add("import-tensorboard", _tensorboard, "import the runs of TensorBoard's files")
    command.add_argument("directory", type=Path, help="each folder of event files below is a run")
    command.add_argument("--follow", action="store_true", help="what is added too, until Ctrl-C")
    command.add_argument("--idle", type=float, default=math.inf, metavar="SECONDS",
                         help="follow until nothing was new for so long")  # fmt: skip
    command.add_argument("--project", default="", help="name or number (default: the only one)")
    command.add_argument("--entity", default="", help="workspace, if two have such a project")
    command.add_argument("--spools", type=Path, help="folder that says how far each import is "
                         f"(default: GROVE_DIR, or {DEFAULT_DIRECTORY})")  # fmt: skip


class _Boards:
    """Copies of all folders of event files below a directory."""

    def __init__(self, root: Path, target: Target, spools: Path, alerts_after: float):
        self.root, self._target, self._spools = root, target, spools
        self._alerts_after = alerts_after
        self.copies: dict[Path, Copy] = {}

    def look(self) -> list[Copy]:
        """Returns all copies, with the folders and files that are new."""
        for directory in tensorboard.directories(self.root):
            copy = self.copies.get(directory) or self._added(directory)
            for path in tensorboard.files(directory):
                if not copy.has(path):
                    copy.add(tensorboard.EventFile(path))
        return list(self.copies.values())

    def finish(self) -> bool:
        """Ends all runs; returns whether the server has all of them."""
        return all([copy.finish() for copy in self.copies.values()])

    def _added(self, directory: Path) -> Copy:
        group = self.root.resolve().name
        is_root = directory == self.root
        name = group if is_root else str(directory.relative_to(self.root))
        copy = Copy("tensorboard", directory, name, group, self._target, self._spools,
                    self._alerts_after)  # fmt: skip
        self.copies[directory] = copy
        return copy


def _tensorboard(options: argparse.Namespace) -> int:
    """Returns 1 if a file is damaged, or not everything could be sent."""
    root: Path = options.directory
    if not root.is_dir():
        raise FileNotFoundError(f"{root}: there is no such directory")
    if not options.idle > 0:
        raise ValueError(f"--idle {options.idle:g}: give a number of seconds above 0")
    spools = options.spools or Path(os.environ.get("GROVE_DIR") or DEFAULT_DIRECTORY)
    is_followed = options.follow or math.isfinite(options.idle)
    # What is added from now on is of a training that runs.
    alerts_after = time.time() if is_followed else LAST_SECOND
    boards = _Boards(root, Target(options.project, options.entity), spools, alerts_after)
    try:
        for copy in boards.look():
            copy.advance()
            if not is_followed:
                copy.finish()
        if is_followed:
            follow(boards.look, idle=options.idle)
    except KeyboardInterrupt:
        print("interrupted: the same command goes on", file=sys.stderr)
    except BaseException:
        boards.finish()
        raise
    return _report(boards)


def _report(boards: _Boards) -> int:
    copies: Sequence[Copy] = list(boards.copies.values())
    if not copies:
        where = f"{boards.root}: there is no event file (*{tensorboard.MARK}*) in it or below"
        raise FileNotFoundError(where)
    is_sent = boards.finish()
    problems = [problem for copy in copies for problem in copy.problems]
    for problem in problems:
        print(f"grove: {problem}", file=sys.stderr)
    for copy in copies:
        url = f", {copy.run.url}" if copy.run else ""
        print(f"{copy.directory}: {copy.count} new records{url}")
    return 0 if is_sent and not problems else 1
