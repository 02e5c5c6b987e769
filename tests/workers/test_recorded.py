"""Tests of the numbers that an engine's parent leaves for what watches the engine."""

import json

import pytest

from workers.runs.engine_parent import EXIT_FILE, PID_FILE
from workers.runs.engine_process import EngineProcess
from workers.runs.recorded import exit_code, process_id, start_time


def test_what_the_parent_wrote_is_read(tmp_path):
    (tmp_path / EXIT_FILE).write_text(json.dumps({"code": -9}))
    (tmp_path / PID_FILE).write_text(json.dumps({"pid": 7, "engine": 8, "time": 1.5}))
    assert exit_code(tmp_path) == -9
    assert process_id(tmp_path, "pid") == 7 and process_id(tmp_path, "engine") == 8
    assert start_time(tmp_path) == 1.5


@pytest.mark.parametrize(
    "content", [None, b"", b'{"code": ', b"\0" * 30, b"[]", b"{}", b'{"code": null, "pid": "x"}']
)
def test_a_file_that_is_lost_or_cut_records_nothing(tmp_path, content):
    for name in (EXIT_FILE, PID_FILE):
        if content is not None:
            (tmp_path / name).write_bytes(content)
    assert exit_code(tmp_path) is None and start_time(tmp_path) is None
    assert process_id(tmp_path, "pid") is None
    assert EngineProcess.adopt(tmp_path) is None, "the next engine may start"
