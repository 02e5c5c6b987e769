"""Tests of values that a program logs whose own methods fail, or which a run has no room for.

No call raises because of a value, and the server takes every record that was kept: it is read here
by the server's own checks.
"""

from __future__ import annotations

import math
import sys

import msgspec
import numpy
import pytest
import torch

import grove
from webapp.client.imports.whole import Finished
from webapp.client.tracking import limits
from webapp.client.tracking.media import Histogram
from webapp.client.tracking.values import plain
from webapp.telemetry.ingest.external_engines import read_batch

HUGE = 10**5000
"""More digits than Python writes."""
LARGEST = 1.7976931348623157e308


class Broken:
    """Every look at it raises an error of its own."""

    def __getattr__(self, name):
        raise KeyError(name)

    def __repr__(self):
        raise RuntimeError("no text")

    __str__ = __repr__


class Deleted:
    """An array whose storage is gone, as a donated one of JAX."""

    shape = (2, 2)

    def tolist(self):
        raise RuntimeError("Array has been deleted.")

    item = tolist


VALUES = {
    "broken": Broken(),
    "deleted": Deleted(),
    "meta": torch.empty(3, device="meta"),
    "complex": torch.tensor([1 + 2j, 3j]),
    "objects": numpy.array([HUGE, None], dtype=object),
    "huge": [HUGE, -HUGE],
    "keys": [{Broken(): Broken(), HUGE: {1: HUGE}}],
    "table": grove.Table(columns=["a"], data=[[HUGE], [Broken()], [[HUGE]], [Deleted()]]),
    "equal": Histogram(numpy.full(5, 0.25)),
    "nearly": Histogram(numpy.array([1.0, math.nextafter(1.0, 2.0)])),
    "nearly listed": Histogram([1e20, math.nextafter(1e20, 2e20)]),
    "wide": Histogram([-LARGEST, 0.0, LARGEST], num_bins=3),
    "wide array": Histogram(numpy.array([-LARGEST, 0.0, LARGEST]), num_bins=3),
    "largest": Histogram(numpy.array([LARGEST, LARGEST])),
    "subnormal": Histogram([0.0, 5e-324]),
}


@pytest.fixture(autouse=True)
def limit_of_digits():
    """Python's own, which libraries turn off for the whole process."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(4300)
    yield
    sys.set_int_max_str_digits(before)


def records(tmp_path):
    """The records of the only spool, as the server reads them."""
    (path,) = tmp_path.glob("*.spool*")
    _, *lines = path.read_bytes().splitlines()
    events = [{"seq": seq, **msgspec.json.decode(one)} for seq, one in enumerate(lines, 1)]
    return read_batch(msgspec.json.encode({"events": events})).events


def of_kind(events, kind):
    return [event.payload for event in events if event.kind == kind]


@pytest.mark.parametrize("name", VALUES)
def test_no_value_ends_a_training(tmp_path, name):
    with grove.init(mode="offline", dir=tmp_path) as run:
        run.log({name: VALUES[name], "loss": 1.5})
        run.config.update({name: VALUES[name], "lr": 0.5})
        run.summary[name] = VALUES[name]
    events = records(tmp_path)
    (logged,) = of_kind(events, "metric.logged")
    assert logged["numbers"]["loss"] == 1.5
    assert any(name in one for one in logged.values() if isinstance(one, dict))
    described = of_kind(events, "run.described")
    assert described[0]["config"]["lr"] == 0.5 and name in described[1]["summary"]


def test_numbers_of_too_many_digits_are_kept_in_hex():
    assert plain({"n": HUGE})["n"].startswith(hex(HUGE)[:100])


@pytest.mark.parametrize("name", ["wide", "wide array"])
def test_a_histogram_counts_numbers_whose_range_is_no_float(name):
    assert VALUES[name].counts == [1.0, 1.0, 1.0]
    assert VALUES[name].edges[0] == -LARGEST and VALUES[name].edges[-1] == LARGEST


def test_names_beyond_the_room_of_a_run_are_left_out_and_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(limits, "MOST_NAMES", 3)
    monkeypatch.setattr(limits, "MOST_SERIES", 4)
    with grove.init(mode="offline", dir=tmp_path) as run:
        for step in range(3):
            run.log({f"text {step}.{index}": "x" for index in range(2)} | {"loss": step})
            run.log({f"number {step}.{index}": index for index in range(2)} | {"loss": step})
    logged = of_kind(records(tmp_path), "metric.logged")
    assert [one["numbers"]["loss"] for one in logged] == [0, 0, 1, 1, 2, 2]
    texts = [name for one in logged for name in one.get("texts", ())]
    assert texts == ["text 0.0", "text 0.1", "text 1.0"]
    numbers = {name for one in logged for name in one["numbers"]}
    assert numbers == {"loss", "number 0.0", "number 0.1", "number 1.0"}
    assert capsys.readouterr().err.count("further names are left out") == 1


def test_settings_beyond_the_room_of_a_run_are_left_out_and_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(limits, "MOST_CONFIG_BYTES", 4000)
    with grove.init(mode="offline", dir=tmp_path) as run:
        for index in range(10):
            run.config.update({f"key {index}": "x" * 500, "newest": index})
        for _ in range(100):
            run.summary["note"] = "y" * 500  # the same one again takes no more room
    described = of_kind(records(tmp_path), "run.described")
    merged = {}
    for one in described:
        merged |= one.get("config", {})
    assert merged.keys() == {"newest", *(f"key {index}" for index in range(7))}
    assert merged["newest"] == 9
    assert len([one for one in described if "summary" in one]) == 100
    assert capsys.readouterr().err.count("config: 4000 bytes are kept") == 1


def test_an_import_keeps_no_more_names_than_a_run_has_room_for(capsys):
    row = {f"text {index}": "x" for index in range(600)} | {"loss": 0.5}
    events = Finished("a", "night", "finished", [(1.0, 0, row), (2.0, 1, row)]).events()
    logged = [one["payload"] for one in events if one["kind"] == "metric.logged"]
    assert [one["numbers"] for one in logged if "numbers" in one] == [{"loss": 0.5}] * 2
    assert len({name for one in logged for name in one.get("texts", ())}) == limits.MOST_NAMES
    assert "night: a run has 10000 names" in capsys.readouterr().err
