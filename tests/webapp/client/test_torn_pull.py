"""Tests of a file of events that a killed `grove pull` has left."""

import msgspec
import pytest

from webapp.client.pushing import last_seq
from webapp.client.types import Event

EVENTS = [Event(seq, 1000 + seq, "log.line", {"message": "ä\n"}) for seq in range(1, 6)]
LINES = [msgspec.json.encode(event) + b"\n" for event in EVENTS]
WHOLE = b"".join(LINES)
ENDS = [len(b"".join(LINES[: n + 1])) for n in range(len(LINES))]


@pytest.mark.parametrize("lost", range(len(LINES[-1]) + len(LINES[-2]) + 1))
def test_what_is_left_of_a_torn_line_is_cut_off(tmp_path, lost):
    file = tmp_path / "events.jsonl"
    file.write_bytes(WHOLE[: len(WHOLE) - lost])
    expected = [line for end, line in zip(ENDS, LINES, strict=True) if end <= len(WHOLE) - lost]
    assert last_seq(file) == len(expected)
    assert file.read_bytes() == b"".join(expected)


def test_a_file_with_less_than_a_line_is_empty_and_one_that_is_missing_has_none(tmp_path):
    file = tmp_path / "events.jsonl"
    assert last_seq(file) == 0
    file.write_bytes(LINES[0][:5])
    assert last_seq(file) == 0 and file.read_bytes() == b""


@pytest.mark.parametrize("line", [b"{}\n", b"\n", b'{"seq": \n', b"\xff\n"])
def test_a_line_in_the_middle_that_is_no_event_is_named_and_kept(tmp_path, line):
    file = tmp_path / "events.jsonl"
    content = LINES[0] + line + LINES[1]
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"line 2: .*pull into another file"):
        last_seq(file)
    assert file.read_bytes() == content
