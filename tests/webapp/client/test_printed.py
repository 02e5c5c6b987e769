"""Tests of texts of other people on the terminal of the client."""

from webapp.client.cli import _format_event, _line
from webapp.client.types import Event, Run


def test_a_name_is_one_line_that_steers_no_terminal():
    run = {name: "" for name in Run.__struct_fields__} | {"step": 1, "steps": 2, "number": 3}
    shown = _line(Run(**run | {"name": "pond\x1b[32m\nheron\u202e\x9b ä"}))
    assert shown.endswith(r"pond\x1b[32m\nheron\u202e\x9b ä #3")


def test_an_event_is_too():
    assert "\u202e" not in _format_event(Event(1, 0, "log.line", {"message": "a\u202eb"}))
