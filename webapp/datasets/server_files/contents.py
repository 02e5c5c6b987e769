"""Contents of a file of the server, read in a process with limits:
`python -m webapp.datasets.server_files.contents < JOB`.

Invariants: the process that serves requests holds a digest, a number and sentences of a file, never
its problems; the cache is keyed by the paths, sizes and times of the files.
Waits: for a slot of `parsing` (none free: refused at once), for the process
(`DATASET_READ_SECONDS`).

JOB: {"dataset", "format", "out", and the limits of `limited_process`}. `out` then holds `RESULT`:
{"hash", "problems", "left_out"} or {"faults"}.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import OrderedDict
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from engine.config.errors import ConfigError
from engine.config.problems import ProblemsConfig
from engine.problems.errors import DatasetError
from engine.problems.source import GENERATED, contents_of, require_enough_problems
from webapp.limited_process import exit_status_of, limit_self, run_limited

RESULT = "contents.json"
MOST_LEFT_OUT = 10_000
"""Faults kept per file; further ones are only counted."""
_MAX_CACHED = 32


@dataclass(frozen=True, slots=True)
class FileContents:
    hash: str = ""
    """Identity of all its problems; empty for generated ones."""
    problems: int = 0
    left_out: tuple[str, ...] = ()
    """Reasons why rows could not be used."""


_cache: OrderedDict[str, FileContents] = OrderedDict()
_lock = Lock()


def checked_contents(problems: ProblemsConfig) -> FileContents:
    """Returns the contents of the settings' file, if a run can be trained on it; empty for
    generated problems.

    Raises:
        ConfigError: the file cannot be read, or not within the limits, or holds too few problems.
    """
    if problems.dataset == GENERATED:
        return FileContents()
    contents = _contents(problems.dataset, problems.format)
    require_enough_problems(contents.problems, problems)
    return contents


def _contents(dataset: str, format: str) -> FileContents:
    """Reads each content once: an experiment has up to 64 runs on the same file."""
    from webapp.datasets.server_files.file_index import (
        identity_of,  # the process itself has no Django
    )

    try:
        identity = identity_of(Path(dataset), format)
    except (OSError, DatasetError):
        return _read(dataset, format)  # which reports its fault
    with _lock:
        if identity in _cache:
            _cache.move_to_end(identity)
            return _cache[identity]
    contents = _read(dataset, format)
    with _lock:
        _cache[identity] = contents
        while len(_cache) > _MAX_CACHED:
            _cache.popitem(last=False)
    return contents


def _read(dataset: str, format: str) -> FileContents:
    from django.conf import settings

    from webapp.datasets.errors import DatasetRefused
    from webapp.datasets.parsing.parse import TOO_MUCH, limits, parsing_slot

    settings.UPLOADS_DIR.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="contents-", dir=settings.UPLOADS_DIR) as folder:
        job = {"dataset": dataset, "format": format, "out": folder, **limits()}
        try:
            with parsing_slot():
                done = run_limited("webapp.datasets.server_files.contents", job)
        except DatasetRefused as error:
            raise _refusal(dataset, str(error)) from None
        result = Path(folder) / RESULT
        if not done or not result.exists():
            raise _refusal(dataset, TOO_MUCH.format(**limits()))
        outcome = json.loads(result.read_text())
    if "faults" in outcome:
        raise ConfigError(outcome["faults"])
    return FileContents(outcome["hash"], outcome["problems"], tuple(outcome["left_out"]))


def _refusal(dataset: str, reason: str) -> ConfigError:
    return ConfigError([{"path": "problems.dataset", "value": dataset, "reason": reason}])


def main() -> int:
    """Reads one job. Exit status 0: read or refused, as recorded in `out`."""
    job: dict[str, Any] = json.load(sys.stdin)
    limit_self(job)
    try:
        contents = contents_of(job["dataset"], job["format"])
        left_out = [str(reason) for reason in contents.left_out[:MOST_LEFT_OUT]]
        if more := len(contents.left_out) - len(left_out):
            left_out.append(f"... and {more} more")
        outcome = asdict(FileContents(contents.hash, contents.problems, tuple(left_out)))
    except ConfigError as error:
        outcome = {"faults": error.problems}
    (Path(job["out"]) / RESULT).write_text(json.dumps(outcome))
    return 0


if __name__ == "__main__":
    sys.exit(exit_status_of(main))
