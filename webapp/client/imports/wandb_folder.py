"""Runs of W&B from the folders that it writes for a program (`wandb/`, online or offline).

Invariants: a run that was resumed, which has several files, is one run. W&B's rows of the same step
are kept in their order. Of pictures, tables and sounds a text says that they are not kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from webapp.client import wandb_files
from webapp.client.imports.wandb_history import without_own
from webapp.client.imports.whole import Finished
from webapp.client.protobuf import Message
from webapp.client.tracking.media import Histogram, Text
from webapp.client.wandb_files import CONFIG, EXIT, HISTORY, RUN, SUMMARY, values_of

QUIET_SECONDS = 600.0
"""A file without an end to which nothing was added for so long belongs to a program that died."""
_OPEN = "open"


def runs_of_folder(root: Path) -> Iterator[Finished | str]:
    """Yields the runs of the folders of W&B at or below a directory, one after another; a sentence
    of one that has not ended, or cannot be read.

    Raises:
        ValueError: there is none.
    """
    paths: dict[str, list[Path]] = {}
    for path in wandb_files.files(root):
        paths.setdefault(path.stem.removeprefix("run-"), []).append(path)
    if not paths:
        raise ValueError(f"{root}: there is no run of W&B (run-ID.wandb) in it or below")
    for key, of_run in paths.items():
        run = Finished(key, "", _OPEN, [])
        try:
            for path in of_run:
                _read(path, run)
        except (OSError, ValueError) as error:
            yield str(error)
            continue
        if run.state == _OPEN:
            if time.time() - of_run[-1].stat().st_mtime < QUIET_SECONDS:
                yield f"{run.name or key} is being written: import it once it has ended"
                continue
            run.state, run.reason = "failed", "the program ended without wandb.finish()"
        yield run


def _read(path: Path, run: Finished) -> None:
    key = run.id
    run.state = _OPEN
    for record in wandb_files.records(path):
        if RUN in record:
            _describe(record.message(RUN), key, run)
        elif CONFIG in record:
            run.config.update(without_own(values_of(record.message(CONFIG).messages(1))))
        elif SUMMARY in record:
            run.summary.update(without_own(values_of(record.message(SUMMARY).messages(1))))
        elif HISTORY in record:
            history = record.message(HISTORY)
            row = values_of(history.messages(1))
            at = row.get("_timestamp")
            at = float(at) if isinstance(at, int | float) else 0.0
            run.rows.append((at, wandb_files.step_of(history), _logged(row)))
        elif EXIT in record:
            code = record.message(EXIT).integer(1)
            run.state = "failed" if code else "finished"
            run.reason = f"the program ended with exit code {code}" if code else ""


def _describe(described: Message, key: str, run: Finished) -> None:
    run.name, run.notes = described.text(8) or key, described.text(9)
    run.tags, run.start = described.texts(10), float(described.message(17).integer(1))
    run.config.update(without_own(values_of(described.message(4).messages(1))))


def _logged(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in without_own(row).items()}


def _value(value: Any) -> Any:
    if not isinstance(value, Mapping) or "_type" not in value:
        return value
    if value["_type"] == "histogram" and "bins" in value:
        try:
            return Histogram(np_histogram=(value["values"], value["bins"]))
        except (KeyError, TypeError, ValueError) as error:
            return Text(f"not kept: histogram: {error}")
    return Text(f"not kept: {value['_type']}")
