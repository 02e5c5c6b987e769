"""Tests of texts about failures without the places of this server's files."""

import sys
import sysconfig
import traceback
from pathlib import Path

import pytest
from django.conf import settings

from engine.events.vocabulary import Event
from webapp.server_paths import relative, relative_event

PACKAGES = sysconfig.get_path("purelib")


@pytest.mark.parametrize(
    "text, shown",
    [
        (f"{settings.GROVE_VAR}/runs/7/config.json is missing", "runs/7/config.json is missing"),
        (f'File "{settings.BASE_DIR}/engine/a.py", line 3', 'File "engine/a.py", line 3'),
        (f"{PACKAGES}/torch/nn.py:12: in forward", "torch/nn.py:12: in forward"),
        (f"not in {Path.home()}, look there", "not in ., look there"),
        ("/opt/models/elm/config.json: no `architectures`", "config.json: no `architectures`"),
        ("('/mnt/a b/x', '/srv/data/y.jsonl')", "('a b/x', 'y.jsonl')"),
        ("https://a.org/v1/models answered 404", "https://a.org/v1/models answered 404"),
        ("and/or docs/guides/models.md, 3/4 of it", "and/or docs/guides/models.md, 3/4 of it"),
        ("POST /v1: not found", "POST /v1: not found"),
    ],
)
def test_a_path_of_the_server_becomes_relative_or_its_name(text, shown):
    assert relative(text) == shown


def test_a_traceback_through_libraries_names_files_alone():
    try:
        Path("/nowhere/at/all.json").read_text()
    except OSError as error:
        text = relative("".join(traceback.format_exception(error)))
    assert "all.json" in text and "pathlib" in text and "test_server_paths.py" in text
    for place in ("/nowhere", str(settings.BASE_DIR), sys.prefix, sys.base_prefix, '"/'):
        assert place not in text


def test_what_an_agent_wrote_is_left_as_it_is():
    program = {"program": "open('/etc/hostname/x')", "error": "/etc/hostname/x"}
    assert relative_event(Event(1, 0.0, "node.closed", 1, 1, program)).payload == program
    failed = {"message": "/etc/hostname/x", "rank": None, "more": ["/etc/a/b"]}
    result = relative_event(Event(1, 0.0, "error", None, None, failed)).payload
    assert result == {"message": "x", "rank": None, "more": ["b"]}
