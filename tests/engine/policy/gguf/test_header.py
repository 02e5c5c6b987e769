"""Tests of the reader of headers: equal to gguf's own, and closed to files that lie."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc

import gguf
import numpy as np
import pytest

from engine.policy.models.gguf.convert import convert
from engine.policy.models.gguf.header import MOST_ELEMENTS, read_header
from engine.policy.models.load import ModelError
from tests.engine.policy.gguf.tiny import content_of, tiny_model
from tests.engine.policy.gguf.vocabularies import byte_level

UINT32, FLOAT32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
F32, Q8_0 = 0, 8


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def entry(key: str | bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def array(kind: int, count: int, values: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + values


def info(name: str = "a", shape=(32, 2), kind: int = F32, offset: int = 0) -> bytes:
    dimensions = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + dimensions + struct.pack("<IQ", kind, offset)


ENTRY = entry("general.alignment", UINT32, struct.pack("<I", 32))


def file_of(
    entries=(ENTRY,), infos=(), data=256, *, magic=b"GGUF", version=3, counts=None, tail=b""
) -> bytes:
    infos = infos or (info(),)
    tensors, values = counts or (len(infos), len(entries))
    start = magic + struct.pack("<IQQ", version, tensors, values)
    header = start + b"".join(entries) + b"".join(infos)
    return header + bytes(-len(header) % 32) + bytes(data) + tail


def read(tmp_path, content: bytes):
    path = tmp_path / "a.gguf"
    path.write_bytes(content)
    with path.open("rb") as file:
        return read_header(path, file)


def test_a_sound_file_is_read(tmp_path):
    header = read(tmp_path, file_of())
    assert header.metadata == {"general.alignment": 32}
    assert header.tensors["a"].shape == (2, 32)
    assert header.tensors["a"].size == 256


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_metadata_and_tensors_are_those_of_gguf_reader(architecture, tmp_path):
    vocabulary = byte_level()
    model = tiny_model(architecture, len(vocabulary["tokenizer.ggml.tokens"]))
    content = content_of(model, architecture, "Q6_K", vocabulary)
    for kind in ("UINT8", "INT8", "UINT16", "INT16", "INT32", "UINT64", "INT64", "FLOAT64"):
        content.values[f"some.{kind}"] = (7, kind)
    content.values |= {"some.list": [1, 2, 3], "some.none": False, "some.text": "äöü"}
    path = content.write(tmp_path / "a.gguf")
    reader = gguf.GGUFReader(path)
    header = read(tmp_path, path.read_bytes())
    expected = {k: f.contents() for k, f in reader.fields.items() if not k.startswith("GGUF.")}
    assert header.metadata.keys() == expected.keys()
    for key, value in header.metadata.items():
        plain = value.tolist() if isinstance(value, np.ndarray) else value
        assert plain == expected[key], key
    assert [
        (t.name, t.kind, t.shape, t.start, t.size) for t in header.tensors.values()
    ] == [
        (t.name, t.tensor_type, tuple(t.shape.tolist()[::-1]), t.data_offset, t.n_bytes)
        for t in sorted(reader.tensors, key=lambda one: one.data_offset)
    ]  # fmt: skip


HOSTILE = {
    "empty": (b"", "first bytes: b'', not GGUF"),
    "magic": (file_of(magic=b"GGML"), "b'GGML', not GGUF"),
    "version 1": (file_of(version=1), "version: 1, read are 2 and 3"),
    "big-endian": (file_of(version=3 << 24), "version: is big-endian"),
    "entries": (file_of(counts=(1, 2**60)), "kv_count: 1,152,921,504,606,846,976"),
    "tensors": (file_of(counts=(2**60, 1)), "tensor_count: 1,152,921"),
    "no tensor": (file_of(counts=(0, 1)), "tensor_count: 0"),
    "one entry more": (file_of(counts=(1, 2)), "a tensor's name: a text of"),
    "one tensor more": (file_of(counts=(2, 1)), "tensor"),
    "key": (file_of([struct.pack("<Q", 2**62)]), "a text of 4,611,686"),
    "text": (file_of([entry("k", STRING, struct.pack("<Q", 10_000))]), "k: 10,000 bytes declared"),
    "long text": (file_of([entry("k", STRING, struct.pack("<Q", 2**40))]), "k: a text of 1,099,"),
    "utf-8": (file_of([entry("k", STRING, text(b"\xff\xfe"))]), "k: is no text in UTF-8"),
    "unprintable key": (file_of([entry("a\nb", BOOL, b"\1")]), r"'a\\nb': is no name of metadata"),
    "empty key": (file_of([entry("", BOOL, b"\1")]), "'': is no name of metadata"),
    "key twice": (file_of([ENTRY, ENTRY]), "general.alignment: is given twice"),
    "value type": (file_of([entry("k", 13, b"")]), "k: is of type 13"),
    "truth value": (file_of([entry("k", BOOL, b"\2")]), "k: is a truth value other than"),
    "array": (file_of([entry("k", ARRAY, array(FLOAT32, 2**60))]), "k: an array of 1,152,921"),
    "array over the file": (file_of([entry("k", ARRAY, array(FLOAT32, 10**6))]), "k: 4,000,000 b"),
    "texts over the file": (file_of([entry("k", ARRAY, array(STRING, 10**6, bytes(8000)))]), "k: "),
    "arrays together": (
        file_of([entry("k", ARRAY, array(BOOL, MOST_ELEMENTS, bytes(MOST_ELEMENTS))),
                 entry("l", ARRAY, array(BOOL, 1, b"\0"))]),
        "l: an array of 1, 3,000,000",
    ),
    "array of arrays": (file_of([entry("k", ARRAY, array(ARRAY, 1))]), "k: is an array of arrays"),
    "array type": (file_of([entry("k", ARRAY, array(99, 1))]), "k: is of type 99"),
    "alignment 0": (
        file_of([entry("general.alignment", UINT32, bytes(4))]), "alignment: 0 is no power"),
    "alignment 24": (
        file_of([entry("general.alignment", UINT32, struct.pack("<I", 24))]), "24 is no power"),
    "alignment of text": (
        file_of([entry("general.alignment", STRING, text("32"))]), "'32' is no power of two"),
    "no dimension": (file_of(infos=[info(shape=())]), "'a': has 0 dimensions"),
    "dimensions": (file_of(infos=[text("a") + struct.pack("<I", 2**31)]), "has 2,147,483,648 dim"),
    "dimension 0": (file_of(infos=[info(shape=(32, 0))]), r"shape = \(0, 32\) is empty"),
    "negative": (file_of(infos=[info(shape=(32, 2**64 - 2))]), "is empty or exceeds"),
    "product": (file_of(infos=[info(shape=(2**32, 2**32))]), "is empty or exceeds"),
    "type": (file_of(infos=[info(kind=250)]), "'a': is of type 250, which is unknown"),
    "removed type": (file_of(infos=[info(kind=4)]), "'a': is of type 4, which is unknown"),
    "blocks": (file_of(infos=[info(shape=(40, 2), kind=Q8_0)]), "rows of 40 numbers are no whole"),
    "misaligned": (file_of(infos=[info(offset=4)]), "offset 4 is no multiple"),
    "outside": (file_of(infos=[info(offset=0, shape=(32, 3))]), "ends at byte .* of a"),
    "far outside": (file_of(infos=[info(offset=2**63)]), "leaves a hole"),
    "overlap": (file_of(infos=[info("a"), info("b", offset=128)]), "'b': offset 128 lies inside"),
    "hole": (file_of(infos=[info(offset=32)], data=512), "leaves a hole after byte 0"),
    "name twice": (
        file_of(infos=[info("a"), info("a", offset=256)], data=512), "'a': is given twice"),
    "no name": (file_of(infos=[info("")]), "'': is no name of a tensor"),
    "odd name": (file_of(infos=[info("a\x1b[2J")]), r"is no name of a tensor"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_file_that_lies_is_refused_at_once(case, tmp_path):
    content, reason = HOSTILE[case]
    tracemalloc.start()
    try:
        begin = time.thread_time()
        with pytest.raises(ModelError, match=reason) as error:
            read(tmp_path, content)
        assert time.thread_time() - begin < 2
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * len(content) + 1_000_000
    assert str(error.value).startswith(str(tmp_path / "a.gguf"))
    assert str(error.value).isprintable()


def test_every_truncation_is_refused(tmp_path):
    content = file_of([ENTRY, entry("k", ARRAY, array(STRING, 2, text("ab") + text("c")))])
    assert read(tmp_path, content).metadata["k"] == ["ab", "c"]
    for length in range(len(content)):
        with pytest.raises(ModelError):
            read(tmp_path, content[:length])


@pytest.mark.parametrize("model", ["gpt2", "llama"])
def test_mutations_are_refused_or_imported_quickly(model, tmp_path):
    """Flips, copies and cuts bytes of the header: nothing but `ModelError` is ever raised."""
    from tests.engine.policy.gguf.vocabularies import pieces

    vocabulary = byte_level(size=300) if model == "gpt2" else pieces()
    tiny = tiny_model("llama", len(vocabulary["tokenizer.ggml.tokens"]), num_hidden_layers=1)
    sound = (
        content_of(tiny, "llama", "Q4_0", vocabulary).write(tmp_path / "sound.gguf").read_bytes()
    )
    header = min(t.start for t in read(tmp_path, sound).tensors.values())
    chance, refused, imported = random.Random(5), 0, 0
    begin = time.process_time()
    for number in range(150):
        content = bytearray(sound)
        for _ in range(chance.choice([1, 1, 2, 8])):
            at = chance.randrange(header)
            match chance.randrange(4):
                case 0:
                    content[at] ^= 1 << chance.randrange(8)
                case 1:
                    content[at] = chance.choice([0, 1, 127, 128, 255])
                case 2:
                    content[at : at + 8] = struct.pack(
                        "<Q", chance.choice([0, 2**31, 2**63, 2**64 - 1])
                    )
                case 3:
                    length = chance.randrange(1, 40)
                    other = chance.randrange(header)
                    content[at : at + length] = content[other : other + length]
        if number % 10 == 0:
            del content[chance.randrange(len(content)) :]
        path = tmp_path / f"{number}.gguf"
        path.write_bytes(content)
        try:
            convert(path, tmp_path / f"{number}")
            imported += 1
        except ModelError as error:
            assert str(error).isprintable(), error
            refused += 1
        path.unlink()
    assert refused > 50
    assert imported > 0
    assert time.process_time() - begin < 60
    assert {one.suffix for one in tmp_path.iterdir()} == {"", ".gguf"}  # no remains of a failure
