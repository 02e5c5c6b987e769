"""Mirror in MLflow, wherever `MLFLOW_TRACKING_URI` is: numbers as metrics, settings as parameters,
texts, tables and histograms as artifacts.

Invariant: a tag has the seq of the last event that is complete. What a write that was cut off has
left behind it is read back by the next one, and not written again.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

from webapp.client.mirrors import Entry, Mirrored

_RUN, _SEQ = "grove.run", "grove.seq"
_MOST = 900
"""Metrics of one request; MLflow takes 1,000."""
_MOST_PARAMS = 100
_LONGEST = 6000
_STATUS = {"finished": "FINISHED", "failed": "FAILED", "stopped": "KILLED"}


class Tracker:
    """The run of an experiment whose tag names the run; it is created by the first write."""

    def __init__(self, run: Mirrored):
        # Minutes of retries would only hide that the server is gone: the mirror can go on later.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        self._client = MlflowClient()
        self._run = run
        self._id = ""
        self._params: dict[str, str] = {}
        self._is_first = True
        """Whether the next write has to look for what an earlier one left."""

    def head(self) -> int:
        experiment = self._client.get_experiment_by_name(self._run.into)
        if experiment is None:
            return 0
        query = f"tags.`{_RUN}` = '{self._run.id}'"
        found = self._client.search_runs([experiment.experiment_id], query, max_results=1)
        if not found:
            return 0
        self._id, self._params = found[0].info.run_id, dict(found[0].data.params)
        return int(found[0].data.tags.get(_SEQ, 0))

    def write(self, entries: list[Entry]) -> None:
        if not self._id:
            self._create()
        if self._is_first:
            self._describe(self._run.config)
        for entry in entries:
            self._describe(entry.config)
            self._keep_files(entry)
        metrics = [metric for entry in entries for metric in _metrics(entry)]
        if self._is_first:
            metrics = self._without_those_there(metrics)
        for first in range(0, len(metrics), _MOST):
            self._client.log_batch(self._id, metrics=metrics[first : first + _MOST])
        self._client.set_tag(self._id, _SEQ, str(entries[-1].seq))
        self._is_first = False

    def end(self, state: str) -> None:
        if self._id and state:
            self._client.set_terminated(self._id, _STATUS[state])

    def _create(self) -> None:
        into = self._run.into
        experiment = self._client.get_experiment_by_name(into)
        number = experiment.experiment_id if experiment else self._client.create_experiment(into)
        tags = {_RUN: self._run.id, "grove.url": self._run.url}
        made = self._client.create_run(number, tags=tags, run_name=self._run.name)
        self._id = made.info.run_id

    def _describe(self, config: dict[str, Any]) -> None:
        """Logs settings: parameters, which MLflow never changes; a changed one is a tag."""
        new, changed = [], []
        for name, value in config.items():
            key, text = _key(name), str(value)[:_LONGEST]
            if key not in self._params:
                new.append(Param(key, text))
            elif self._params[key] != text:
                changed.append(RunTag(f"config.{key}", text))
        for first in range(0, len(new), _MOST_PARAMS):
            self._client.log_batch(self._id, params=new[first : first + _MOST_PARAMS])
        for first in range(0, len(changed), _MOST_PARAMS):
            self._client.log_batch(self._id, tags=changed[first : first + _MOST_PARAMS])
        self._params |= {one.key: one.value for one in new}

    def _keep_files(self, entry: Entry) -> None:
        for name, text in entry.texts.items():
            self._client.log_text(self._id, text, f"texts/{_path(name)}/{entry.step}.txt")
        for kind, values in (("tables", entry.tables), ("histograms", entry.histograms)):
            for name, one in values.items():
                path = f"{kind}/{_path(name)}/{entry.step}.json"
                self._client.log_text(self._id, json.dumps(one), path)

    def _without_those_there(self, metrics: list[Metric]) -> list[Metric]:
        there = set()
        for key in {metric.key for metric in metrics}:
            there |= {_point(one) for one in self._client.get_metric_history(self._id, key)}
        return [metric for metric in metrics if _point(metric) not in there]


def _metrics(entry: Entry) -> Iterable[Metric]:
    milliseconds = round(entry.time * 1000)
    for name, number in entry.numbers.items():
        yield Metric(_key(name), number, milliseconds, entry.step)


def _point(metric: Metric) -> tuple[str, int, int, Any]:
    value = "nan" if math.isnan(metric.value) else metric.value
    return metric.key, metric.step, metric.timestamp, value


def _key(name: str) -> str:
    """Returns a name that MLflow takes: letters, digits and any of _ - . : / and spaces."""
    return re.sub(r"[^\w\-. :/]", "_", name).strip("/").replace("//", "/")[:250] or "_"


def _path(name: str) -> str:
    return re.sub(r"[^\w\-.]", "_", name).strip(".")[:100] or "_"
