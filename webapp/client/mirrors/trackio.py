"""Mirror in Trackio's storage on this machine (`TRACKIO_DIR`).

Invariant: each row has its event's seq as `grove/seq`, and rows are stored in their order, so the
largest one says where to go on. A server or a Space, whose rows cannot be read back, is refused:
`trackio sync` sends what is here.
"""

from __future__ import annotations

import os
import re
from typing import Any

import trackio
from trackio.sqlite_storage import SQLiteStorage

from webapp.client.mirrors import Entry, Mirrored
from webapp.client.mirrors.entries import samples
from webapp.client.mirrors.pictures import pictures

_MOST_VALUES = 10_000
"""Most values of a histogram, which Trackio gets one by one; of more, each bin has its share."""
_SEQ = "grove/seq"
_REMOTE = ("TRACKIO_SERVER_URL", "TRACKIO_SPACE_ID", "TRACKIO_BUCKET_ID")


class Tracker:
    """The run NAME-ID of a project, which the first write creates."""

    def __init__(self, run: Mirrored):
        for variable in _REMOTE:
            if value := os.environ.get(variable):
                remedy = "unset it, mirror to this machine, and send that with: trackio sync"
                raise ValueError(f"{variable} = {value!r}: it cannot say what it holds; {remedy}")
        self._name, self._into = f"{run.name}-{run.id[:8]}", run.into
        self._config, self._run = run.config, run
        self._trackio: Any = None

    def head(self) -> int:
        if self._into not in SQLiteStorage.get_projects():
            return 0
        rows = SQLiteStorage.get_logs(self._into, self._name)
        return max((int(row.get(_SEQ, 0)) for row in rows), default=0)

    def write(self, entries: list[Entry]) -> None:
        for entry in entries:
            self._config |= entry.config
        if self._trackio is None:
            self._trackio = trackio.init(
                project=self._into, name=self._name, config={**self._config}, resume="allow",
                embed=False, auto_log_gpu=False, auto_log_cpu=False,
            )  # fmt: skip
        for entry in entries:
            self._trackio.log({**_values(entry), _SEQ: entry.seq}, step=entry.step)

    def end(self, state: str) -> None:
        if self._trackio is not None:
            self._trackio.finish()


def _values(entry: Entry) -> dict[str, Any]:
    values: dict[str, Any] = {**entry.numbers}
    values |= {name: trackio.Markdown(_verbatim(text)) for name, text in entry.texts.items()}
    for name, table in {**entry.tables, **entry.trees}.items():
        values[name] = trackio.Table(columns=table["columns"], data=table["rows"])
    for name, picture, caption in pictures(entry):
        values[name] = trackio.Image(picture, caption=caption or None)
    for name, one in entry.histograms.items():
        bins = samples(one)
        share = min(1.0, _MOST_VALUES / max(1.0, sum(count for *_, count in bins)))
        middles = [
            (left + right) / 2 for left, right, count in bins for _ in range(round(count * share))
        ]
        values[name] = trackio.Histogram(middles)
    return values


def _verbatim(text: str) -> str:
    """Returns a text as a block of Markdown that shows it as it is, whatever fences it has."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
