"""Tests of TensorBoard's files, read without its library: as written, torn, damaged, foreign."""

from __future__ import annotations

import math
import os
import struct

import pytest

from tests.webapp.client.imports.event_files import (
    event,
    histogram,
    hparams,
    scalar,
    tensor,
    text,
    write,
)
from webapp.client import protobuf, record_files
from webapp.client.imports.tensorboard import EventFile, directories, files
from webapp.client.record_files import Damaged, crc32c, framed


def read(path):
    return list(EventFile(path).records())


def values(path):
    return [(one.step, one.values) for one in read(path)]


def test_the_checksum_is_that_of_castagnoli():
    # RFC 3720, B.4.
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA and crc32c(bytes(range(32))) == 0x46DD794E


@pytest.mark.parametrize(
    ("encoded", "content", "expected"),
    [
        (1, protobuf.packed(5, [1.5], "f"), 1.5),
        (2, protobuf.packed(6, [0.1], "d"), 0.1),
        (1, protobuf.field(4, struct.pack("<f", -2.0)), -2.0),
        (2, protobuf.field(4, struct.pack("<d", 0.1)), 0.1),
        (9, protobuf.field(4, struct.pack("<q", -7)), -7.0),
        (19, protobuf.field(4, struct.pack("<e", 0.5)), 0.5),
        (14, protobuf.field(4, b"\xc0\x3f"), 1.5),  # bfloat16: the first half of a float
    ],
)
def test_scalars_of_every_type_are_read(tmp_path, encoded, content, expected):
    path = write(tmp_path, event(3, tensor("loss", "scalars", content, encoded)))
    assert values(path) == [(3, {"loss": expected})]


def test_what_a_file_says_is_read_and_what_is_not_kept_is_said(tmp_path):
    path = write(
        tmp_path,
        framed(protobuf.field(1, 1.0) + protobuf.field(3, "brain.Event:2")),
        event(1, scalar("loss", 0.5), scalar("bad", math.inf)),
        event(-2, text("note", "one", "two"), hparams(lr=0.25)),
        event(2, histogram("h", (0, 1, 2), (1, 2, 3))),
        event(2, tensor("picture", "images", b"")),
        event(2, tensor("custom", "", b"")),
    )
    version, first, second, third, fourth, fifth = read(path)
    assert (version.number, version.values, version.config) == (1, {}, {})
    assert (first.time, first.step, first.values) == (100.0, 1, {"loss": 0.5, "bad": math.inf})
    assert second.step == -2 and second.values["note"].text == "one\n\ntwo"
    assert second.config == {"lr": 0.25}
    assert third.values["h"].as_json() == {"edges": [0.0, 1.0, 2.0], "counts": [2.0, 3.0]}
    assert fourth.values["picture"].text == "not kept: images"
    assert fifth.values["custom"].text == "not kept: data of no kind"


def test_a_plugin_is_known_from_the_first_value_of_its_tag(tmp_path):
    later = protobuf.field(1, "loss") + protobuf.field(
        8, protobuf.field(1, 1) + protobuf.packed(5, [2.0], "f")
    )
    first = tensor("loss", "scalars", protobuf.packed(5, [1.0], "f"))
    path = write(tmp_path, event(1, first), event(2, later))
    assert values(path) == [(1, {"loss": 1.0}), (2, {"loss": 2.0})]


def test_a_histogram_of_many_buckets_keeps_its_sum(tmp_path):
    path = write(tmp_path, event(1, histogram("h", *((n, n + 1, 1) for n in range(1300)))))
    ((_, read_values),) = values(path)
    kept = read_values["h"].as_json()
    assert sum(kept["counts"]) == 1300 and len(kept["counts"]) <= 512
    assert (kept["edges"][0], kept["edges"][-1]) == (0, 1300)


def test_a_record_that_is_being_written_is_read_once_it_is_whole(tmp_path):
    record = event(1, scalar("loss", 0.5))
    path = write(tmp_path, record)
    file = EventFile(path)
    assert len(list(file.records())) == 1
    for size in range(len(record)):  # wherever the writer is
        with path.open("r+b") as torn:
            torn.truncate(len(record))
            torn.seek(0, os.SEEK_END)
            torn.write(record[:size])
        assert list(file.records()) == []
    with path.open("ab") as rest:
        rest.write(record[-1:])
    assert [one.number for one in file.records()] == [2]


@pytest.mark.parametrize("at", [0, 8, 14, -1])
def test_damage_is_named_with_what_is_before_it(tmp_path, at):
    whole, broken = event(1, scalar("loss", 0.5)), bytearray(event(2, scalar("loss", 0.25)))
    broken[at] ^= 1
    path = write(tmp_path, whole, bytes(broken))
    found = []
    with pytest.raises(Damaged, match=r"tfevents.*: record 2 is damaged \(.*\); the 1 before"):
        found.extend(EventFile(path).records())
    file = EventFile(path).records()
    assert next(file).values == {"loss": 0.5}


@pytest.mark.parametrize(
    "content", [b"\xff" * 40, b"no event file at all, but long enough", framed(b"\x0b\x0b")]
)
def test_a_foreign_file_is_damaged_from_its_first_record_on(tmp_path, content):
    path = write(tmp_path, content)
    with pytest.raises(Damaged, match="record 1 is damaged"):
        read(path)


def test_a_record_of_many_megabytes_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(record_files, "LONGEST", 64)
    path = write(tmp_path, framed(b"x" * 65), event(1, scalar("loss", 0.5)))
    assert values(path) == [(0, {}), (1, {"loss": 0.5})]


def test_a_file_that_became_shorter_is_refused(tmp_path):
    path = write(tmp_path, event(1, scalar("loss", 0.5)), event(2, scalar("loss", 0.5)))
    file = EventFile(path)
    assert len(list(file.records())) == 2
    os.truncate(path, 10)
    with pytest.raises(Damaged, match="bytes and is 10 now"):
        list(file.records())


def test_every_folder_of_event_files_is_a_run(tmp_path):
    for name in ("b", "a/deep"):
        write(tmp_path / name, event(1, scalar("loss", 0.5)))
    (tmp_path / "b" / "other.txt").write_text("x")
    assert directories(tmp_path) == [tmp_path / "a/deep", tmp_path / "b"]
    assert [path.name for path in files(tmp_path / "b")] == ["events.out.tfevents.1.host"]
