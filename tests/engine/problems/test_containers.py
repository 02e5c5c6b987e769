"""Tests that every container format yields the same rows."""

import bz2
import gzip
import json
import lzma
import os
import pickle
from pathlib import Path

import pyarrow
import pytest
from pyarrow import ipc, parquet

from engine.problems import containers
from engine.problems.containers.text import lines_of
from engine.problems.errors import DatasetError, DatasetIssue

ROWS = [{"task": f"t/{i}", "tests": ["é", str(i)], "n": i} for i in range(100)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def zstd(data):
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def arrow_stream(rows):
    table = pyarrow.Table.from_pylist(rows)
    sink = pyarrow.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def arrow_file(rows):
    table = pyarrow.Table.from_pylist(rows)
    sink = pyarrow.BufferOutputStream()
    with ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def parquet_file(rows):
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist(rows), sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet", "rows.json.gz"])
def test_a_pointer_of_git_lfs_is_named_with_its_remedy(tmp_path, name):
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(DatasetError, match=r"a pointer of git-lfs.*`git lfs pull`"):
        list(containers.rows_of(tmp_path / name))


VIEWER = [{"row_idx": i, "row": row, "truncated_cells": []} for i, row in enumerate(ROWS)]
COLUMNS = {key: [row[key] for row in ROWS] for key in ROWS[0]}
NUMBERED = {key: {str(i): row[key] for i, row in enumerate(ROWS)} for key in ROWS[0]}


def page(rows):
    """A response of the data set viewer of Hugging Face."""
    return {"features": [{"name": "task", "type": {}}], "rows": rows, "num_rows_total": 100,
            "num_rows_per_page": 100, "partial": False}  # fmt: skip


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


WRAPPED = {
    "a page of the viewer": json.dumps(page(VIEWER)).encode(),
    "a page in lines": json.dumps(page(VIEWER), indent=2).encode(),
    "first rows of the viewer": json.dumps(
        {"dataset": "a/b", "config": "c", "split": "d", **page(VIEWER)}).encode(),
    "rows of a page alone": json.dumps({"rows": [{"row": row} for row in ROWS]}).encode(),
    "a list of the viewer's rows": json.dumps(VIEWER).encode(),
    "lines of the viewer's rows": lines(VIEWER),
    "lines of rows that are wrapped": lines({"row": row} for row in ROWS),
    "lines of pages": lines([page(VIEWER[:40]), page(VIEWER[40:])]),
    "splits": json.dumps({"train": ROWS[:40], "test": ROWS[40:]}).encode(),
    "columns": json.dumps(COLUMNS).encode(),
    "columns of pandas": json.dumps(NUMBERED, indent=1).encode(),
    "splits of which one is empty": json.dumps({"train": ROWS, "validation": []}).encode(),
    "rows among many fields": json.dumps(
        {"name": "a", "version": 1, "license": "MIT", "authors": ["b"], "data": ROWS}).encode(),
    "objects over lines": "".join(json.dumps(row, indent=2) + "\n" for row in ROWS).encode(),
    "columns by their name": json.dumps(
        {"columns": [*COLUMNS], "index": [*range(100)], "data": [[*row.values()] for row in ROWS]}
    ).encode(),
}  # fmt: skip
PACKED = {
    **WRAPPED,
    "jsonl": LINES,
    "jsonl without a last newline": LINES.rstrip(),
    "json list": json.dumps(ROWS).encode(),
    "json list in lines": json.dumps(ROWS, indent=2).encode(),
    "json with a list inside": json.dumps({"version": 1, "data": ROWS}).encode(),
    "json of named rows": json.dumps({row["task"]: row for row in ROWS}, indent=1).encode(),
    "gzip": gzip.compress(LINES),
    "gzip of a list": gzip.compress(json.dumps(ROWS).encode()),
    "zstd": zstd(LINES),
    "zstd in two frames": zstd(LINES[:700]) + zstd(LINES[700:]),
    "parquet": parquet_file(ROWS),
    "arrow stream": arrow_stream(ROWS),
    "arrow file": arrow_file(ROWS),
}


OTHERS = {
    "a zip archive": b"PK\x03\x04" + bytes(26) + LINES,
    "a tar archive": b"rows.jsonl".ljust(257, b"\0") + b"ustar\0" + bytes(249) + LINES,
    "packed by bzip2": bz2.compress(LINES),
    "packed by xz": lzma.compress(LINES),
    "packed by gzip twice": gzip.compress(gzip.compress(LINES)),
    "Parquet that is packed": gzip.compress(parquet_file(ROWS)),
    "a database of SQLite": b"SQLite format 3\0" + bytes(100),
    "a pickle": pickle.dumps(ROWS),
    "a page in HTML": b"<!DOCTYPE html>\n<p>404</p>\n",
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_file_of_another_kind_is_named_in_one_line(tmp_path, what):
    """Of an archive that is not compressed some lines are rows."""
    file = tmp_path / "rows.jsonl"
    file.write_bytes(OTHERS[what])
    with pytest.raises(DatasetError, match=f"cannot be read: it is {what}; \\w") as refusal:
        found(file)
    assert len(refusal.value.issues) == 1


def found(path, columns=None):
    return [row.data for row in containers.rows_of(path, columns)]


@pytest.mark.parametrize("name", PACKED)
def test_rows_are_read_under_any_file_name(tmp_path, name):
    file = tmp_path / "data"
    file.write_bytes(PACKED[name])
    assert found(file) == ROWS


def test_a_row_that_the_viewer_has_cut_says_so(tmp_path):
    file = tmp_path / "rows.jsonl"
    for content in (json.dumps(page([VIEWER[0], VIEWER[1] | {"truncated_cells": ["tests", "n"]}])),
                    json.dumps({"row": ROWS[0]}) + "\n"
                    + json.dumps({"row": ROWS[1], "truncated_cells": ["tests", "n"]})):  # fmt: skip
        file.write_text(content)
        whole, cut = found(file)
        assert whole == ROWS[0]
        assert isinstance(cut, ValueError) and "has cut the cells tests, n; take" in str(cut)


@pytest.mark.parametrize(
    "row",
    [
        {"row": {"a": 1}, "other": 2},
        {"row": "a", "row_idx": 0},
        {"rows": [{"a": 1}], "features": [{"b": 1}]},
        {"inputs": ["a"], "outputs": ["b"], "question": "c"},
        {"inputs": ["a"], "outputs": ["b", "c"]},
        {"0": {"a": 1}, "b": 2},
        {},
    ],
)
def test_what_only_looks_like_a_wrapper_is_a_row(tmp_path, row):
    file = tmp_path / "row.json"
    file.write_text(json.dumps(row))
    assert found(file) == [row]


@pytest.mark.parametrize("name", ["parquet", "arrow stream"])
def test_only_the_requested_columns_are_read(tmp_path, name):
    file = tmp_path / "data"
    file.write_bytes(PACKED[name])
    assert found(file, {"n", "other"}) == [{"n": i} for i in range(100)]


def test_the_index_of_a_row_is_its_line(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('\n{"a": 1}\n\n{"a": 2}\n')
    rows = list(containers.rows_of(file))
    assert [(row.line, row.data) for row in rows] == [(2, {"a": 1}), (4, {"a": 2})]


def test_a_torn_line_does_not_hide_the_others(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"a": 1}\n{"a": \n{"a": 3}\n')
    rows = list(containers.rows_of(file))
    assert [row.data for row in rows if isinstance(row.data, dict)] == [{"a": 1}, {"a": 3}]
    assert isinstance(rows[1].data, ValueError) and rows[1].line == 2


def test_long_integers_and_numbers_that_are_none_are_read(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"a": ' + "9" * 5000 + '}\n{"a": Infinity}\n')
    assert found(file) == [{"a": 10**5000 - 1}, {"a": float("inf")}]


def test_a_folder_that_datasets_saved_is_read_in_order(tmp_path):
    for split, part in (("test", ROWS[:10]), ("train", ROWS[10:])):
        folder = tmp_path / split
        folder.mkdir()
        half = len(part) // 2
        for i, rows in enumerate((part[:half], part[half:])):
            (folder / f"data-0000{i}-of-00002.arrow").write_bytes(arrow_stream(rows))
        (folder / "cache-12ab.arrow").write_bytes(arrow_stream(part))
        (folder / "state.json").write_text('{"_fingerprint": "x"}')
        (folder / "dataset_info.json").write_text('{"features": {}}')
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert found(tmp_path) == ROWS


def test_a_copy_of_a_repository_is_read_in_order(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "a.jsonl").write_bytes(LINES)
    (tmp_path / "README.md").write_text("# A data set")
    (tmp_path / "data" / "test-00000-of-00001.parquet").write_bytes(parquet_file(ROWS[:50]))
    (tmp_path / "data" / "train.jsonl.gz").write_bytes(gzip.compress(LINES.split(b"\n", 50)[50]))
    assert found(tmp_path) == ROWS


def test_the_folders_of_apps_are_rows(tmp_path):
    folder = tmp_path / "test" / "0042"
    folder.mkdir(parents=True)
    (folder / "question.txt").write_text("Add.")
    (folder / "input_output.json").write_text('{"inputs": ["1"], "outputs": ["1"]}')
    (folder / "metadata.json").write_text('{"difficulty": "interview"}')
    (row,) = found(tmp_path)
    assert (row["problem_id"], row["question"], row["difficulty"]) == ("0042", "Add.", "interview")
    assert row["solutions"] == "" and "inputs" in row["input_output"]


@pytest.mark.parametrize(
    "data",
    [gzip.compress(LINES)[:200], zstd(LINES)[:200], parquet_file(ROWS)[:-40], b"PAR1",
     arrow_stream(ROWS)[:100], b"[1, 2"],
    ids=["gzip", "zstd", "parquet", "magic", "arrow", "json"],
)  # fmt: skip
def test_a_file_that_is_cut_off_is_named(tmp_path, data):
    file = tmp_path / "cut"
    file.write_bytes(data)
    with pytest.raises(DatasetError, match=str(file)):
        found(file)


def test_a_folder_without_rows_is_named(tmp_path):
    (tmp_path / "README.md").write_text("nothing")
    with pytest.raises(DatasetError, match="holds no file that ends in"):
        found(tmp_path)


def test_a_line_cannot_take_all_memory(tmp_path):
    file = tmp_path / "bomb.gz"
    file.write_bytes(gzip.compress(b"1234\n" + b" " * 5000))
    lines = lines_of(file, max_line_bytes=1000)
    assert next(lines) == (1, b"1234\n")
    with pytest.raises(DatasetError, match="is longer than 1000 bytes"):
        next(lines)


def test_an_entry_that_is_no_file_is_refused_and_never_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    for path in (tmp_path / "pipe.jsonl", tmp_path, Path("/dev/zero")):
        with pytest.raises(DatasetError, match=r"is neither a file nor|symbolic links"):
            found(path)
    for name in ("loop.jsonl", "x" * 5000, "a\0b"):
        with pytest.raises(DatasetError, match="cannot be read"):
            found(tmp_path / name)


def test_an_error_can_be_printed_and_stored_with_any_content():
    text = str(DatasetIssue("\udcff.jsonl", 1, "a\0b", 10**20_000, "\ud800"))
    assert "\0" not in text and text.encode()
    assert "(int)" in text


CSV = ''',id,text,tests
0,a/1,"two
lines, and ""quotes""","['x', 'y']"
1,a/2,,[]
2,a/3
'''


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_table_of_text_is_read_row_by_row(tmp_path, pack, delimiter):
    text = CSV if delimiter == "," else CSV.replace(",", "\t").replace("lines\t", "lines,")
    text = text.replace("['x'\t", "['x',")
    (tmp_path / "data").write_bytes(pack(b"\xef\xbb\xbf" + text.encode()))
    first, second, short = containers.rows_of(tmp_path / "data")
    assert first.data == {
        "id": "a/1", "text": 'two\nlines, and "quotes"', "tests": "['x', 'y']"}  # fmt: skip
    assert (first.line, second.line, short.line) == (2, 4, 5)
    assert second.data == {"id": "a/2", "text": None, "tests": "[]"}
    assert "has 2 cells, and the first line names 4 columns" in str(short.data)


def test_a_table_that_is_no_text_is_refused_with_its_name(tmp_path):
    (tmp_path / "a.csv").write_bytes("id,text\n1,é\n".encode("latin-1"))
    with pytest.raises(DatasetError, match=r"a\.csv.*cannot be read: 'utf-8' codec"):
        found(tmp_path / "a.csv")


def test_of_a_list_the_row_with_a_field_twice_is_left_out(tmp_path):
    file = tmp_path / "rows.json"
    file.write_text('[{"a": 1}, {"a": 2, "b": [{"c": 1, "c": 2}]}, {"a": 3}]')
    one, twice, three = found(file)
    assert (one, three) == ({"a": 1}, {"a": 3})
    assert "a field comes twice, of 'c'" in str(twice)


def test_of_objects_over_lines_a_torn_one_hides_no_other(tmp_path):
    file = tmp_path / "rows.json"
    file.write_text('{\n  "a": 1\n}\n{\n  "a":\n{\n  "a": 3\n}\n')
    rows = list(containers.rows_of(file))
    assert [(row.line, row.data) for row in rows if isinstance(row.data, dict)] == [
        (1, {"a": 1}), (6, {"a": 3})]  # fmt: skip
    assert isinstance(rows[1].data, ValueError) and rows[1].line == 4
