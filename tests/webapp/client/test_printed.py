"""Tests of texts of other people on the terminal of the client."""

import io
import json
import sys
from pathlib import Path

import httpx
import pytest

from engine.config import encoding as of_engine
from webapp.client import encoding as of_client
from webapp.client.cli import _format_event, _line, _path, _print_about
from webapp.client.client import _check
from webapp.client.connecting import clean_token
from webapp.client.tracking.runs import tags_of
from webapp.client.types import Event, Refused, Run


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


BOTH = pytest.mark.parametrize("module", [of_client, of_engine], ids=["client", "engine"])


@BOTH
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_name_that_a_terminal_lacks_is_escaped_and_stays_json(monkeypatch, encoding, module):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stdout)
    module.escape_what_cannot_be_encoded()
    print('"Käfer ☕ 👩"', flush=True)
    written = stdout.buffer.getvalue().decode(encoding)
    assert json.loads(written) == "Käfer ☕ 👩"
    assert ("☕" in written) == (encoding == "utf-8")


@BOTH
def test_a_program_is_written_as_it_is_but_on_a_terminal(monkeypatch, module):
    program = "print('\x1b[2J\u202e')\n\tä"
    assert module.for_terminal(program) == program
    with Path("/dev/ptmx").open("r+b", buffering=0) as terminal:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(terminal, write_through=True))
        assert module.for_terminal(program) == "print('\\x1b[2J\\u202e')\n\tä"


def test_what_is_said_of_a_file_does_not_mix_with_it(tmp_path, capsys):
    file = tmp_path / "log"
    file.touch()
    _print_about(file, "file")
    _print_about(_path("-"), "stdout")
    assert capsys.readouterr() == ("file\n", "stdout\n")


def test_a_page_in_place_of_rest_is_one_line():
    request = httpx.Request("GET", "http://elm.example/")
    page = httpx.Response(502, html="<html>nginx</html>", request=request)
    with pytest.raises(Refused, match=r"^502: Bad Gateway: a web page answers; check the address"):
        _check(page)
