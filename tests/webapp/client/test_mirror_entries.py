"""Tests of what a mirror makes of events, and of TensorBoard's files that it writes."""

from __future__ import annotations

import math
import os

import pytest

from webapp.client.imports.tensorboard import EventFile, files
from webapp.client.mirrors import Entry, Mirrored
from webapp.client.mirrors.entries import Entries, flat, samples, table_text
from webapp.client.mirrors.tensorboard import Tracker
from webapp.client.types import Event

RUN = Mirrored("0d3cbb7e-4a0b", "A run/7", "http://localhost/runs/1/", "", {"lr": 0.5})


def entry(kind, payload):
    return Entries().of(Event(7, 10_500, kind, payload))


def test_numbers_have_the_names_of_their_charts():
    step = {"step": 3, "reward": 0.5, "phases": {"update": 2.0}, "reward_by_agent": {"oak": 1}}
    made = entry("step.end", step)
    assert (made.seq, made.time, made.step) == (7, 10.5, 3)
    assert made.numbers == {"reward": 0.5, "phase.update": 2.0, "reward.oak": 1.0}
    update = {"step": 3, "agent": "oak", "loss": 0.5, "figures": {"clip": 0.1}}
    assert entry("agent.update", update).numbers == {"loss.oak": 0.5, "figures.clip.oak": 0.1}


def test_what_a_program_logged_keeps_its_names():
    logged = {"step": 2, "numbers": {"train/loss": 0.5}, "nonfinite": {"bad": "-inf", "b": "nan"},
              "texts": {"note": "x"}, "tables": {}, "histograms": {}}  # fmt: skip
    made = entry("metric.logged", logged)
    assert (made.step, made.texts) == (2, {"note": "x"})
    assert made.numbers.keys() == {"train/loss", "bad", "b"}
    assert made.numbers["bad"] == -math.inf and math.isnan(made.numbers["b"])


def test_settings_are_flat_and_what_says_nothing_is_left_out():
    assert entry("run.described", {"config": {"a": {"b": 1}, "c": {}}}).config == {
        "a.b": 1,
        "c": {},
    }
    assert entry("run.described", {"notes": "x"}) is None
    assert entry("log.line", {"message": "x"}) is None and entry("step.end", {"step": 1}) is None
    assert flat({"a": {"b": {"c": None}}}) == {"a.b.c": None}


def test_tables_and_histograms_are_what_other_trackers_show():
    table = {"columns": ["a", "b"], "rows": [[1.0, "x|y"], [None, "two\nlines"]]}
    assert table_text(table).splitlines() == [
        "| a | b |", "| --- | --- |", "| 1 | x\\|y |", "| None | two lines |",
    ]  # fmt: skip
    assert samples({"edges": [0, 1, 3], "counts": [2, 4]}) == [(0, 1, 2), (1, 3, 4)]


@pytest.fixture
def mirrored(tmp_path):
    return Mirrored(RUN.id, RUN.name, RUN.url, str(tmp_path), RUN.config)


def entries(*seqs):
    return [Entry(seq, 10.0 + seq, seq, {"loss": 1 / seq}) for seq in seqs]


def losses(folder):
    records = (one for path in files(folder) for one in EventFile(path).records())
    return [(one.step, one.values["loss"]) for one in records if "loss" in one.values]


def test_a_mirror_in_files_goes_on_after_the_last_whole_record(mirrored):
    first = Tracker(mirrored)
    assert first.head() == 0
    first.write(entries(1, 2, 3))
    first.end("")
    (path,) = files(first.folder)
    os.truncate(path, path.stat().st_size - 1)
    again = Tracker(mirrored)
    assert again.head() == 2
    again.write(entries(3, 4))
    again.end("finished")
    assert Tracker(mirrored).head() == 4 and first.folder.name == "A-run-7-0d3cbb7e"
    assert losses(first.folder) == [(n, 1 / n) for n in (1, 2, 3, 4)]


def test_everything_of_an_entry_is_in_its_record(mirrored):
    tracker = Tracker(mirrored)
    histogram = {"edges": [0.0, 1.0, 3.0], "counts": [2.0, 4.0]}
    table = {"columns": ["a"], "rows": [[1.0]]}
    numbers = {"big": 1e200, "bad": math.nan}
    tracker.write([Entry(9, 10.0, 5, numbers, {"note": "one"}, {"t": table}, {"h": histogram})])
    tracker.end("finished")
    (record,) = list(EventFile(files(tracker.folder)[0]).records())[1:]
    values = record.values
    assert (record.time, record.step, values["big"]) == (10.0, 5, 1e200)
    assert math.isnan(values["bad"]) and values["note"].text == "one"
    assert "| 1 |" in values["t"].text and "| lr | 0.5 |" in values["settings"].text
    assert values["h"].as_json() == histogram
