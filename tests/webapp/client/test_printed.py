"""Tests of texts of other people on the terminal of the client."""

import pytest

from webapp.client.cli import _format_event, _line
from webapp.client.connecting import clean_token
from webapp.client.tracking.runs import tags_of
from webapp.client.types import Event, Run


def test_a_name_is_one_line_that_steers_no_terminal():
    run = {name: "" for name in Run.__struct_fields__} | {"step": 1, "steps": 2, "number": 3}
    shown = _line(Run(**run | {"name": "pond\x1b[32m\nheron\u202e\x9b ä"}))
    assert shown.endswith(r"pond\x1b[32m\nheron\u202e\x9b ä #3")


def test_an_event_is_too():
    assert "\u202e" not in _format_event(Event(1, 0, "log.line", {"message": "a\u202eb"}))


@pytest.mark.parametrize("around", ["{}\r\n", "\ufeff{}", "\xa0{}\u200b\n", "\t{} "])
def test_a_token_is_sent_without_what_a_file_has_around_it(around):
    assert clean_token(around.format("grove_acorn")) == "grove_acorn"
    with pytest.raises(ValueError, match="its character 9 of 12") as refused:
        clean_token(around.format("grove_ac\ufefforn"[:12]))
    assert "acorn" not in str(refused.value) and "grove_ac" not in str(refused.value)


def test_tags_are_such_as_the_server_takes():
    assert tags_of(["wide trees", "a\u202eb", "\u3164", " ", "c"]) == ["wide-trees", "a_b", "c"]
