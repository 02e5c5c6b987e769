"""Mirror in W&B, as its own settings say (`WANDB_MODE`, `WANDB_ENTITY`, `WANDB_DIR`).

Invariant: a row's W&B step is its event's seq, and W&B takes each step once. Online W&B says where
a run is resumed; offline the files of the run on this machine do. Charts have `grove/step` as axis.
"""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Any

import wandb

from webapp.client.mirrors import Entry, Mirrored
from webapp.client.mirrors.entries import samples
from webapp.client.mirrors.pictures import pictures
from webapp.client.mirrors.wandb_position import offline_head, online_head

_STEP = "grove/step"


class Tracker:
    """The run `grove-ID` of a project; it is there after the first write."""

    def __init__(self, run: Mirrored):
        self._mirrored = run
        self._id = f"grove-{run.id}"
        self._run: Any = None
        self._is_offline = os.environ.get("WANDB_MODE") in ("offline", "dryrun")

    def head(self) -> int:
        if not self._is_offline:
            self._open()
            return online_head(self._run)
        return offline_head(Path(os.environ.get("WANDB_DIR") or ".") / "wandb", self._id)

    def write(self, entries: list[Entry]) -> None:
        if self._run is None:
            self._open()
        for entry in entries:
            if entry.config:
                self._run.config.update(entry.config, allow_val_change=True)
            row = {**_values(entry), _STEP: entry.step, "_timestamp": entry.time}
            self._run.log(row, step=entry.seq, commit=True)

    def end(self, state: str) -> None:
        if self._run is not None:
            self._run.finish(exit_code=1 if state == "failed" else 0)
            self._run = None

    def _open(self) -> None:
        mirrored = self._mirrored
        self._run = wandb.init(
            project=mirrored.into, id=self._id, name=mirrored.name, notes=mirrored.url,
            config=mirrored.config, resume=None if self._is_offline else "allow",
            settings=wandb.Settings(console="off", x_disable_stats=True, silent=True,
                                    disable_git=True, disable_code=True),
        )  # fmt: skip
        self._run.define_metric("*", step_metric=_STEP)


def _values(entry: Entry) -> dict[str, Any]:
    values: dict[str, Any] = {**entry.numbers}
    for name, text in entry.texts.items():
        values[name] = wandb.Html(f"<pre>{html.escape(text)}</pre>", data_is_not_path=True)
    for name, table in {**entry.tables, **entry.trees}.items():
        rows: Any = [[_cell(one) for one in row] for row in table["rows"]]
        values[name] = wandb.Table(columns=table["columns"], data=rows)
    for name, one in entry.histograms.items():
        bins: Any = ([count for _, _, count in samples(one)], one["edges"])
        values[name] = wandb.Histogram(np_histogram=bins)
    for name, picture, caption in pictures(entry):
        values[name] = wandb.Image(picture, caption=caption or None)
    return values


def _cell(value: Any) -> Any:
    """Returns a cell as a text: W&B refuses a column with values of several types."""
    return None if value is None else str(value)
