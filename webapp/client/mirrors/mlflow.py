"""Mirror in MLflow, wherever `MLFLOW_TRACKING_URI` is: numbers as metrics, settings as parameters,
texts, histograms, and tables, trees and images in the formats of `log_table` and `log_image`, as
artifacts.

Invariant: a tag has the seq of the last event that is complete. What a write that was cut off has
left behind it is read back by the next one, and not written again; an artifact's name follows from
its event alone, so a second write replaces it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import PIL.Image
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

from webapp.client.mirrors import Entry, Mirrored
from webapp.client.mirrors.pictures import pictures

_RUN, _SEQ = "grove.run", "grove.seq"
_MOST = 900
"""Metrics of one request; MLflow takes 1,000."""
_MOST_PARAMS = 100
_LONGEST, _LONGEST_KEY = 6000, 250
"""Characters of a value and of a name."""
_TABLES, _IMAGES = "mlflow.loggedArtifacts", "mlflow.loggedImages"
"""Tags by which MLflow knows of a run's tables and images."""
_MOST_LISTED = 4500
"""Characters of the list of tables, a tag; further tables are artifacts that it leaves out."""
_SMALL = (256, 256)
"""Pixels of the picture that MLflow's grid of images shows."""
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
        self._tables: list[dict[str, str]] | None = None
        """Tables that its tag lists; None until they are read."""
        self._has_images = False
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
        new: list[Param] = []
        tags: dict[str, str] = {}
        for name, value in config.items():
            key, text = _key(name), str(value)[:_LONGEST]
            if key not in self._params:
                new.append(Param(key, text))
                self._params[key] = text
            elif self._params[key] != text:
                tags[f"config.{key}"[:_LONGEST_KEY]] = text
        changed = [RunTag(key, text) for key, text in tags.items()]
        for first in range(0, len(new), _MOST_PARAMS):
            self._client.log_batch(self._id, params=new[first : first + _MOST_PARAMS])
        for first in range(0, len(changed), _MOST_PARAMS):
            self._client.log_batch(self._id, tags=changed[first : first + _MOST_PARAMS])

    def _keep_files(self, entry: Entry) -> None:
        for name, text in entry.texts.items():
            self._client.log_text(self._id, text, f"texts/{_path(name)}/{entry.step}.txt")
        for name, one in entry.histograms.items():
            path = f"histograms/{_path(name)}/{entry.step}.json"
            self._client.log_text(self._id, json.dumps(one), path)
        for kind, tables in (("tables", entry.tables), ("trees", entry.trees)):
            for name, table in tables.items():
                path = f"{kind}/{_path(name.removeprefix('trees/'))}/{entry.step}.json"
                self._keep_table(path, table)
        for name, picture, _ in pictures(entry):
            self._keep_image(entry, name, picture)

    def _keep_table(self, path: str, table: dict[str, Any]) -> None:
        """Writes what `log_table` would, which appends to a table that is there already."""
        content = {"columns": table["columns"], "data": table["rows"]}
        self._client.log_text(self._id, json.dumps(content), path)
        if self._tables is None:
            tags = self._client.get_run(self._id).data.tags
            self._tables = json.loads(tags.get(_TABLES, "[]"))
        listed = {"path": path, "type": "table"}
        longer = json.dumps([*self._tables, listed])
        if listed not in self._tables and len(longer) <= _MOST_LISTED:
            self._tables.append(listed)
            self._client.set_tag(self._id, _TABLES, longer)

    def _keep_image(self, entry: Entry, name: str, picture: PIL.Image.Image) -> None:
        """Writes the files of `log_image`, whose names end with a random id there."""
        random = uuid.uuid5(uuid.NAMESPACE_URL, f"{self._run.id}/{entry.seq}/{name}")
        milliseconds = round(entry.time * 1000)
        key = re.sub(r"[^a-zA-Z0-9_\-.~ ]", "_", name.replace("/", "~"))[:100]
        stem = f"{key}+step+{entry.step}+timestamp+{milliseconds}+{random}"
        small = picture.convert("RGBA")
        small.thumbnail(_SMALL)
        with tempfile.TemporaryDirectory() as folder:
            for one, file in ((picture, f"{stem}.png"), (small, f"{stem}+compressed.webp")):
                one.save(Path(folder) / file)
            self._client.log_artifacts(self._id, folder, "images")
        if not self._has_images:
            self._client.set_tag(self._id, _IMAGES, "True")
            self._has_images = True

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
    """Returns a name that MLflow takes: letters, digits and any of _ - . : / and spaces, which as a
    path is its own shortest form."""
    plain = re.sub(r"[^\w\-. :/]", "_", name)[:_LONGEST_KEY]
    parts = ["_" if one == ".." else one for one in plain.split("/") if one not in ("", ".")]
    made = "/".join(parts) or "_"
    return f"_{made[1:]}" if made.startswith("..") else made


def _path(name: str) -> str:
    """Returns a name of a folder; of two names with other characters, never the same one."""
    plain = re.sub(r"[^\w\-.]", "_", name).strip(".")[:100] or "_"
    if plain == name:
        return plain
    return f"{plain}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:6]}"
