"""Tests of the files that W&B writes for its runs, read without its library."""

from __future__ import annotations

import json
import os
import time
import zlib
from pathlib import Path

import pytest

from webapp.client.imports import wandb_folder
from webapp.client.protobuf import field
from webapp.client.wandb_files import NoRun, files, records, values_of

BLOCK, HEAD = 32_768, 7


def record(kind: int, content: bytes) -> bytes:
    return field(kind, content)


def item(key: str, value: object, number: int = 1) -> bytes:
    return field(number, field(1, key) + field(16, json.dumps(value)))


def row(step: int, **values: object) -> bytes:
    items = b"".join(item(name, one) for name, one in values.items())
    return record(2, items + field(2, field(1, step)))


def run(name: str = "a run") -> bytes:
    settings = field(4, item("lr", 0.5) + item("_wandb", {"x": 1}))
    return record(17, field(8, name) + field(9, "notes") + field(10, "tag") + settings
                  + field(17, field(1, 1000)))  # fmt: skip


def write(path: Path, *messages: bytes) -> Path:
    """Writes a file of messages, cut at the ends of blocks as LevelDB does."""
    content = bytearray(b":W&B\x01\x01\x00")
    for message in messages:
        rest, is_first = message, True
        while is_first or rest:
            room = BLOCK - len(content) % BLOCK
            if room < HEAD:
                content += bytes(room)
                room = BLOCK
            part, rest = rest[: room - HEAD], rest[room - HEAD :]
            kind = (1 if not rest else 2) if is_first else (3 if rest else 4)
            content += zlib.crc32(part, zlib.crc32(bytes([kind]))).to_bytes(4, "little")
            content += len(part).to_bytes(2, "little") + bytes([kind]) + part
            is_first = False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(content))
    return path


def read(folder):
    return list(wandb_folder.runs_of_folder(folder))


def test_a_run_is_read_whole(tmp_path):
    rows = [row(n, loss=1 / (n + 1), _timestamp=1000.5 + n, note="x" * 30_000) for n in range(4)]
    write(tmp_path / "offline-run-1" / "run-abc.wandb", run(), *rows,
          record(3, item("best", 0.25)), record(18, field(1, 0)))  # fmt: skip
    (one,) = read(tmp_path)
    assert (one.id, one.name, one.state, one.start) == ("abc", "a run", "finished", 1000.0)
    assert (one.config, one.summary) == ({"lr": 0.5}, {"best": 0.25})
    assert (one.tags, one.notes) == (["tag"], "notes")
    assert [(at, step, values["loss"]) for at, step, values in one.rows] == [
        (1000.5 + n, n, 1 / (n + 1)) for n in range(4)
    ]
    assert all(len(values["note"]) == 30_000 for _, _, values in one.rows)


@pytest.mark.parametrize("left", range(HEAD + 1))
def test_a_block_is_padded_where_no_record_can_begin(tmp_path, left):
    overhead = len(field(99, bytes(BLOCK - 50))) - (BLOCK - 50)
    first = field(99, bytes(BLOCK - left - 2 * HEAD - overhead))
    path = write(tmp_path / "run-abc.wandb", first, run(), record(18, field(1, 0)))
    assert len(list(records(path))) == 3 and read(tmp_path)[0].state == "finished"


def test_values_of_every_kind_are_read():
    typed = [
        field(1, "flag") + field(4, 1), field(1, "minus") + field(5, 9),
        field(1, "number") + field(6, 0.5), field(1, "text") + field(7, "t"),
        field(2, "deep") + field(2, "er") + field(8, "[1]"), field(1, "none") + field(3, 1),
        field(1, "odd") + field(16, "NaN?"),
    ]  # fmt: skip
    from webapp.client.protobuf import Message

    assert values_of(Message(one) for one in typed) == {
        "flag": True, "minus": -5, "number": 0.5, "text": "t", "deep": {"er": [1]}, "none": None,
        "odd": "NaN?",
    }  # fmt: skip


def test_what_is_not_kept_is_said(tmp_path):
    media = {"_type": "image-file"}
    odd, good = {"_type": "histogram", "bins": [0]}, {"_type": "histogram", "bins": [0, 1]}
    write(tmp_path / "run-a.wandb", run(), row(0, m=media, o=odd, h={**good, "values": [3]}),
          record(18, field(1, 0)))  # fmt: skip
    ((_, _, values),) = read(tmp_path)[0].rows
    assert values["m"].text == "not kept: image-file"
    assert values["o"].text.startswith("not kept: histogram")
    assert values["h"].as_json() == {"edges": [0.0, 1.0], "counts": [3.0]}


def test_a_resumed_run_is_one_run(tmp_path):
    write(tmp_path / "run-1" / "run-abc.wandb", run(), row(0, loss=1), record(18, field(1, 1)))
    write(tmp_path / "run-2" / "run-abc.wandb", run(), row(1, loss=0), record(18, field(1, 0)))
    (one,) = read(tmp_path)
    assert [step for _, step, _ in one.rows] == [0, 1] and one.state == "finished"


def test_a_run_without_an_end_is_being_written_or_has_died(tmp_path):
    path = write(tmp_path / "run-abc.wandb", run("night"), row(0, loss=1), row(1, loss=0))
    content = path.read_bytes()
    path.write_bytes(content[:-5])
    assert read(tmp_path) == ["night is being written: import it once it has ended"]
    old = time.time() - wandb_folder.QUIET_SECONDS - 1
    os.utime(path, (old, old))
    (one,) = read(tmp_path)
    assert (one.state, len(one.rows)) == ("failed", 1)
    assert one.reason == "the program ended without wandb.finish()"


def test_another_end_than_zero_failed(tmp_path):
    write(tmp_path / "run-abc.wandb", run(), record(18, field(1, 3)))
    assert (read(tmp_path)[0].state, read(tmp_path)[0].reason) == (
        "failed", "the program ended with exit code 3",
    )  # fmt: skip


def test_damage_and_foreign_files_are_named_and_the_others_read(tmp_path):
    good = write(tmp_path / "1" / "run-a.wandb", run(), record(18, field(1, 0)))
    content = bytearray(good.read_bytes())
    content[20] ^= 1
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "run-b.wandb").write_bytes(content)
    (tmp_path / "2" / "run-c.wandb").write_bytes(b"nothing")
    fine, damaged, foreign = read(tmp_path)
    assert fine.id == "a"
    assert damaged.endswith("run-b.wandb: record 1 is damaged: its checksum is wrong")
    assert "run-c.wandb: this is no file of W&B" in foreign
    write(tmp_path / "run-d.wandb", b"\x0b\x0b")
    with pytest.raises(NoRun, match="record 1 is damaged: field 1 has the unknown type 3"):
        list(records(*files(tmp_path / "run-d.wandb")))
    with pytest.raises(ValueError, match="there is no run of W&B"):
        read(tmp_path / "1" / "none")


def test_a_value_has_the_step_of_its_axis(tmp_path):
    """As transformers and Lightning define it: W&B's own step counts the calls of `log`."""
    axis = (
        record(12, field(1, "train/global_step")),
        record(12, field(2, "*") + field(4, "train/global_step")),
    )
    rows = [row(n, **{"train/global_step": 10 * n, "loss": float(n)}) for n in range(3)]
    write(tmp_path / "run-a.wandb", run(), rows[0], *axis, *rows[1:], row(3, late=1.0),
          record(18, field(1, 0)))  # fmt: skip
    found = [(step, values) for _, step, values in read(tmp_path)[0].rows]
    assert [step for step, _ in found] == [0, 10, 20, 20]
    assert found[1][1] == {"train/global_step": 10, "loss": 1.0}


PIXEL = b"\x89PNG\r\n\x1a\n" + b"x"
MEDIA = {
    "table": {"_type": "table-file", "path": "media/t.json"},
    "image": {"_type": "image-file", "path": "media/i.png", "caption": "one"},
    "several": {"_type": "images/separated", "filenames": ["media/i.png"] * 2, "captions": 0},
    "html": {"_type": "html-file", "path": "media/h.html"},
}
HOSTILE = {
    "up": {"_type": "html-file", "path": "../secret.txt"},
    "absolute": {"_type": "html-file", "path": "/etc/hostname"},
    "linked": {"_type": "html-file", "path": "media/link"},
    "nul": {"_type": "html-file", "path": "a\0b"}, "number": {"_type": "html-file", "path": 5},
    "gone": {"_type": "table-file", "path": "media/none.json"},
    "broken": {"_type": "table-file", "path": "media/h.html"},
    "kind": {"_type": ["x"]}, "other": {"_type": "plotly-file", "path": "media/h.html"},
}  # fmt: skip


@pytest.fixture
def media(tmp_path):
    folder = tmp_path / "offline-run-1" / "files" / "media"
    folder.mkdir(parents=True)
    (folder / "t.json").write_text('{"columns": ["a", "b"], "data": [[1, "x"], [2, "y"]]}')
    (folder / "i.png").write_bytes(PIXEL)
    (folder / "h.html").write_text("<b>x</b>")
    (folder.parent.parent / "secret.txt").write_text("s3cret")
    (folder / "link").symlink_to(folder.parent.parent / "secret.txt")
    return tmp_path


def test_tables_pictures_and_html_are_read_from_the_run_s_folder(media):
    write(media / "offline-run-1" / "run-a.wandb", run(), row(0, **MEDIA), record(18, field(1, 0)))
    (logged,) = [one for one in read(media)[0].events() if one["kind"] == "metric.logged"]
    payload = logged["payload"]
    assert payload["tables"]["table"]["rows"] == [[1.0, "x"], [2.0, "y"]]
    assert payload["images"]["image"]["caption"] == "one"
    assert {"several.0", "several.1"} <= payload["images"].keys()
    assert payload["texts"]["html"] == "<b>x</b>"


def test_no_file_outside_of_the_run_s_folder_is_read(media):
    write(media / "offline-run-1" / "run-a.wandb", run(), row(0, **HOSTILE),
          record(18, field(1, 0)))  # fmt: skip
    ((_, _, values),) = read(media)[0].rows
    texts = {name: one.text for name, one in values.items()}
    assert "s3cret" not in str(texts) and all(
        one.startswith("not kept: ") for one in texts.values()
    )
    for name in ("up", "absolute", "linked"):
        assert texts[name].endswith("it is outside of the run's folder of files")
    assert texts["gone"] == (
        "not kept: table-file: media/none.json: there is no such file in files"
    )
    assert texts["kind"] == "not kept: ['x']" and texts["other"] == "not kept: plotly-file"
