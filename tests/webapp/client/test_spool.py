"""Tests of tracking without a server: what is kept, in which form, and that a program goes on."""

import base64
import io
import math
import os
import random
import subprocess
import sys

import msgspec
import numpy
import PIL.Image
import pytest

import grove
from tests.helpers.file_limit import files_of_at_most
from tests.packaging.builds import ROOT
from webapp.client.tracking import limits
from webapp.client.tracking.spool import Header, Position, Spool, unfinished
from webapp.client.tracking.values import name_of, parts, sorted_values, text_of


def lines_of(directory):
    (path,) = directory.glob("*.spool*")
    header, *lines = path.read_bytes().splitlines()
    return msgspec.json.decode(header), [msgspec.json.decode(line) for line in lines]


def test_an_offline_run_keeps_everything_in_the_order_of_its_calls(tmp_path):
    with grove.init(project="Oaks", id="off", mode="offline", dir=tmp_path) as run:
        grove.config.lr = 0.1
        grove.log({"train/loss": 0.5, "note": "x"})
        grove.log({"train/loss": math.nan}, step=7)
        run.alert("Hot", level="WARN")
    header, lines = lines_of(tmp_path)
    assert (header["key"], header["project"], header["resume"]) == ("off", "Oaks", "never")
    assert [(line["kind"], line["payload"]) for line in lines] == [
        ("run.state", {"state": "running"}),
        ("run.described", {"config": {"lr": 0.1}}),
        ("metric.logged", {"step": 0, "numbers": {"train/loss": 0.5}, "texts": {"note": "x"}}),
        ("metric.logged", {"step": 7, "nonfinite": {"train/loss": "nan"}}),
        ("log.line", {"level": "warning", "message": "Hot"}),
        ("run.state", {"state": "finished", "reason": ""}),
    ]


def test_a_value_of_any_type_is_kept_and_none_raises():
    class Odd:
        def __repr__(self):
            return "odd"

    values = {
        "int": 3, "big": 10**400, "huge": -1e301, "bool": True, "none": None, "text": "x",
        "deep": {"er": {"est": 1.5}}, "list": [1, 2], "odd": Odd(),
        "h": grove.Histogram([1.0, math.nan, 3.0], num_bins=2),
        "t": grove.Table(columns=["a"], data=[[math.inf], [None]]),
    }  # fmt: skip
    fields = sorted_values(values)
    assert fields["numbers"] == {"int": 3.0, "bool": 1.0, "deep.er.est": 1.5}
    assert fields["nonfinite"] == {"big": "inf", "huge": "-inf"}
    assert fields["texts"] == {"text": "x", "list": "[1, 2]", "odd": '"odd"'}
    assert fields["histograms"]["h"] == {"edges": [1.0, 2.0, 3.0], "counts": [1.0, 1.0]}
    assert fields["tables"]["t"]["rows"] == [["inf"], [None]]


def test_a_picture_of_any_kind_is_a_file_within_the_bound(tmp_path):
    noise = random.Random(0)
    large = PIL.Image.frombytes("RGB", (1500, 1000), noise.randbytes(4_500_000))
    file = tmp_path / "small.png"
    large.resize((20, 10)).save(file)
    given = {
        "grey": [[0, 255], [128, 7]], "shares": [[[0.0, 0.5, 1.0]] * 3], "pil": large,
        "file": file, "bytes": file.read_bytes(), "palette": large.convert("P"),
        "array": numpy.frombuffer(noise.randbytes(3 * 1100 * 700), "uint8").reshape(700, 1100, 3),
    }  # fmt: skip
    images = sorted_values({name: grove.Image(one) for name, one in given.items()})["images"]
    assert images.keys() == given.keys()
    sizes = {}
    for name, image in images.items():
        content = base64.b64decode(image["data"])
        assert len(content) <= limits.MOST_IMAGE_BYTES, name
        with PIL.Image.open(io.BytesIO(content)) as opened:
            opened.load()
            assert opened.format == image["format"].upper()
            sizes[name] = opened.size
    assert sizes["grey"] == (2, 2) and sizes["file"] == (20, 10)
    with PIL.Image.open(io.BytesIO(base64.b64decode(images["shares"]["data"]))) as opened:
        assert opened.getpixel((1, 0)) == (0, 128, 255)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "NoneType is no picture"),
        (b"GIF89a", "neither PNG nor JPEG"),
        ("/no/such/file.png", "No such file"),
        ([[1, 2], [3]], "rows of the same number of pixels"),
        ([[[1, 2]]], "2 channels: give 1, 3 or 4"),
        ([[math.nan]], "no number"),
        ([["a"]], "no number"),
    ],
)
def test_what_is_no_picture_is_a_text_that_says_why(value, reason):
    fields = sorted_values({"p": grove.Image(value, caption="the tree")})
    assert reason in fields["texts"]["p"] and "the tree" in fields["texts"]["p"]


def test_names_and_texts_are_within_the_servers_bounds():
    assert name_of("train/loss") == "train/loss"
    assert name_of("a\x00b\u202ec\\d\n") == "a_b_c_d_"
    for name in ("n" * 300, "/" * 170, "\ud800" * 200, ""):
        kept = name_of(name)
        size = len(kept) + kept.count("/") + kept.count("~")
        assert 1 <= size <= limits.LONGEST_NAME and kept.isprintable()
    assert name_of("n" * 300) != name_of("n" * 301)
    assert text_of("x" * 70_000).endswith("[70000 characters]")


def test_many_numbers_become_several_events():
    whole = sorted_values({f"m{index}": float(index) for index in range(4500)})
    pieces = parts(whole)
    assert [len(one["numbers"]) for one in pieces] == [2000, 2000, 500]
    assert {name for one in pieces for name in one["numbers"]} == whole["numbers"].keys()


def test_a_disk_without_room_for_a_header_keeps_no_torn_file(tmp_path):
    """Such a file would be no spool: what a killed program had logged could not be sent."""
    with files_of_at_most(20):
        spool = Spool.create(tmp_path, Header(session="s" * 8, key="k"), "1")
        spool.append(b'{"a":1}')
    assert unfinished(tmp_path) == [] and spool.problem is not None
    assert spool.read(Position(), 10, 100) == [b'{"a":1}']


def test_a_line_that_a_full_disk_cuts_off_is_written_once_there_is_room(tmp_path):
    spool = Spool.create(tmp_path, Header(session="s" * 8, key="k"), "1")
    spool.append(b'{"a":1}')
    (path,) = unfinished(tmp_path)
    with files_of_at_most(path.stat().st_size + 5):
        spool.append(b'{"a":2}')
        assert spool.problem is not None and path.read_bytes().endswith(b'{"a":1}\n')
    spool.append(b'{"a":3}')
    spool.close()
    _, lines = lines_of(tmp_path)
    assert lines == [{"a": 1}, {"a": 2}, {"a": 3}] and spool.problem is None


def test_a_torn_line_is_dropped_and_whole_ones_are_read_once(tmp_path):
    spool = Spool.create(tmp_path, Header(session="s" * 8, key="k"), "1")
    spool.append(b'{"a":1}', b'{"a":2}')
    spool.close()
    (path,) = unfinished(tmp_path)
    path.write_bytes(path.read_bytes() + b'{"a":')
    again = Spool.open_dead(path)
    position = Position()
    assert again.read(position, 1, 100) == [b'{"a":1}']
    assert again.read(position, 10, 100) == [b'{"a":2}'] and again.lines == 2
    again.append(b'{"a":3}')
    assert again.read(position, 10, 100) == [b'{"a":3}'] and again.read(position, 10, 100) == []
    again.close(sent=True)
    assert unfinished(tmp_path) == []


def test_a_folder_that_cannot_be_written_stops_no_program(tmp_path, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with grove.init(mode="offline", dir=blocked) as run:
        grove.log({"loss": 1.0})
        assert run.problem is not None
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("module", ["django", "torch", "numpy", "ray", "engine"])
def test_the_client_imports_nothing_heavy(module, imported_by_grove):
    assert not any(name.partition(".")[0] == module for name in imported_by_grove)


@pytest.fixture(scope="module")
def imported_by_grove():
    paths = os.pathsep.join((str(ROOT), str(ROOT / "webapp" / "client" / "packages")))
    code = "import sys, grove as wandb; wandb.log; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.split()
