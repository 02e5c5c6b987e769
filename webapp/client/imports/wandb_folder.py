"""Runs of W&B from the folders that it writes for a program (`wandb/`, online or offline).

Invariants: a run that was resumed, which has several files, is one run. W&B's rows of the same step
are kept in their order; a value whose axis the program gave by `define_metric` has the step of
that. Tables, pictures and HTML are those of the run's folder (`wandb_media`); of sounds and others
a text says that they are not kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from webapp.client import wandb_files
from webapp.client.imports import wandb_media
from webapp.client.imports.wandb_history import without_own
from webapp.client.imports.whole import Finished
from webapp.client.protobuf import Message
from webapp.client.tracking.axes import Axes
from webapp.client.wandb_files import CONFIG, EXIT, HISTORY, METRIC, RUN, SUMMARY, values_of

QUIET_SECONDS = 600.0
"""A file without an end to which nothing was added for so long belongs to a program that died."""
_OPEN = "open"
_NAME, _GLOB, _STEP_METRIC = 1, 2, 4
"""Fields of the record of a metric."""


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
        run, axes = Finished(key, "", _OPEN, []), Axes()
        try:
            for path in of_run:
                _read(path, run, axes)
        except (OSError, ValueError) as error:
            yield str(error)
            continue
        if run.state == _OPEN:
            if time.time() - of_run[-1].stat().st_mtime < QUIET_SECONDS:
                yield f"{run.name or key} is being written: import it once it has ended"
                continue
            run.state, run.reason = "failed", "the program ended without wandb.finish()"
        yield run


def _read(path: Path, run: Finished, axes: Axes) -> None:
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
            run.rows += _rows(record.message(HISTORY), axes, path)
        elif METRIC in record:
            _define(record.message(METRIC), axes)
        elif EXIT in record:
            code = record.message(EXIT).integer(1)
            run.state = "failed" if code else "finished"
            run.reason = f"the program ended with exit code {code}" if code else ""


def _describe(described: Message, key: str, run: Finished) -> None:
    run.name, run.notes = described.text(8) or key, described.text(9)
    run.tags, run.start = described.texts(10), float(described.message(17).integer(1))
    run.config.update(without_own(values_of(described.message(4).messages(1))))


def _define(metric: Message, axes: Axes) -> None:
    """Takes over what `define_metric` has said of a name, or of all names with a beginning."""
    name = metric.text(_GLOB) or metric.text(_NAME)
    if name and (axis := metric.text(_STEP_METRIC)) and "*" not in name[:-1]:
        axes.define(name, axis)


def _rows(
    history: Message, axes: Axes, path: Path
) -> Iterator[tuple[float, int, dict[str, Any]]]:  # fmt: skip
    """Yields time, step and values of a row; several if its values have axes of their own."""
    row = values_of(history.messages(1))
    at = row.get("_timestamp")
    at = float(at) if isinstance(at, int | float) else 0.0
    logged = without_own(row)
    for step, values in axes.split(logged).items() or [(None, {})]:
        of_row = wandb_files.step_of(history) if step is None else step
        yield at, of_row, {name: wandb_media.kept(one, path) for name, one in values.items()}
