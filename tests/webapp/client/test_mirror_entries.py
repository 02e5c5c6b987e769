"""Tests of what a mirror makes of events, and of TensorBoard's files that it writes."""

from __future__ import annotations

import base64
import io
import math
import os

import PIL.Image
import pytest

from webapp.client.imports.tensorboard import EventFile, files
from webapp.client.mirrors import Entry, Mirrored
from webapp.client.mirrors.entries import Entries, flat, samples, size_of, table_text
from webapp.client.mirrors.pictures import pictures
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


def grown(tree, step=3):
    """Events of a tree of two nodes; a node follows its parent."""
    answers = [(1, 0, "x = 1", 0.5), (2, 1, "x = 2", None)]
    yield "tree.open", {"tree": tree, "step": step, "problem": "p", "statement": "What is x?"}
    for node, parent, text, score in answers:
        at = {"tree": tree, "node": node}
        yield "node.open", {**at, "agent": "oak", "parent": parent, "depth": 1, "draws": {}}
        yield "node.close", {**at, "program": text, "score": score}
    yield "tree.close", {"tree": tree, "nodes": 2, "solved": False}


def made_of(entries, events, first=1):
    made = (entries.of(Event(seq, 0, *one)) for seq, one in enumerate(events, first))
    return [(one.seq, one.step, one.trees) for one in made if one]


ROWS = [[0, None, "", "What is x?", None], [1, 0, "oak", "x = 1", 0.5],
        [2, 1, "oak", "x = 2", None]]  # fmt: skip


def test_a_tree_is_a_table_when_it_is_closed():
    table = {"columns": ["node", "parent", "agent", "text", "reward"], "rows": ROWS}
    both = [*grown(7), *grown(9), *grown(11, step=4)]
    made = made_of(Entries(), both)
    assert [(seq, step, [*trees]) for seq, step, trees in made] == [
        (6, 3, ["trees/1"]), (12, 3, ["trees/2"]), (18, 4, ["trees/1"]),
    ]  # fmt: skip
    assert all(one == table for _, _, trees in made for one in trees.values())


@pytest.mark.parametrize("cut", range(12))
def test_a_mirror_that_goes_on_within_a_tree_makes_the_same_tables(cut):
    events = [*grown(7), *grown(9)]
    again = Entries()
    before = made_of(again, events[:cut])
    assert before + made_of(again, events[cut:], cut + 1) == made_of(Entries(), events)


def test_steps_that_are_made_again_after_a_resume_have_their_names_again():
    opened = list(grown(7))[:3]
    events = [*grown(5), *opened, ("run.resumed", {"step": 2}), *grown(7)]
    made = made_of(Entries(), events)
    assert [[*trees] for _, _, trees in made] == [["trees/1"], ["trees/1"]]
    assert made[1][2]["trees/1"]["rows"] == ROWS


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_the_size_of_a_picture_is_read_from_its_file(kind):
    file = io.BytesIO()
    PIL.Image.new("RGB", (7, 300)).save(file, kind)
    assert size_of(file.getvalue()) == (7, 300)
    assert size_of(file.getvalue()[:20]) == (0, 0) and size_of(b"") == (0, 0)


def test_a_damaged_image_is_left_out_and_named(capsys):
    file = io.BytesIO()
    PIL.Image.new("RGB", (30, 30)).save(file, "png")
    whole = file.getvalue()
    images = {
        name: {"format": "png", "data": base64.b64encode(content).decode(), "caption": name}
        for name, content in (("cut", whole[:50]), ("whole", whole), ("none", b"text"))
    }
    shown = pictures(Entry(1, 0.0, 4, images=images))
    assert [(name, one.size, caption) for name, one, caption in shown] == [
        ("whole", (30, 30), "whole")
    ]
    stderr = capsys.readouterr().err
    assert "image 'cut' of step 4 cannot be read" in stderr and "image 'none'" in stderr


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
    file = io.BytesIO()
    PIL.Image.new("L", (3, 2)).save(file, "png")
    data = base64.b64encode(file.getvalue()).decode()
    image = {"format": "png", "data": data, "caption": ""}
    tree = {"columns": ["node", "text"], "rows": [[0, "a problem"]]}
    more = {"images": {"i": image}, "trees": {"trees/1": tree}}
    logged = {"note": "one"}, {"t": table}, {"h": histogram}
    tracker.write([Entry(9, 10.0, 5, numbers, *logged, **more)])
    tracker.end("finished")
    (record,) = list(EventFile(files(tracker.folder)[0]).records())[1:]
    values = record.values
    assert (record.time, record.step, values["big"]) == (10.0, 5, 1e200)
    assert math.isnan(values["bad"]) and values["note"].text == "one"
    assert "| 1 |" in values["t"].text and "| lr | 0.5 |" in values["settings"].text
    assert values["h"].as_json() == histogram and "| a problem |" in values["trees/1"].text
    raw = files(tracker.folder)[0].read_bytes()
    assert file.getvalue() in raw and b"images" in raw
