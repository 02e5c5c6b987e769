"""Tests that the documented command takes the pictures in docs, and that they are up to date."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

DOCS = Path(__file__).resolve().parents[2] / "docs"
SIZES = {"run.png": (2160, 2340), "charts.png": (2160, 1500)}
"""Pixels of each picture: one and a half times the size of its window."""


def size_of(picture: Path) -> tuple[int, int]:
    """Width and height, from the header of a PNG."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    return struct.unpack(">II", head[16:24])


def test_the_documented_command_takes_the_pictures_and_those_in_docs_are_of_todays_pages(
    server, run, log, tmp_path
):
    run.feed(log)
    checkpoint = server.var / "runs" / str(run.run.pk) / "checkpoints" / "step-000002"
    checkpoint.mkdir(parents=True)
    (checkpoint / "manifest.json").write_text("{}")  # the demo run has one that can be forked
    link = server.url + run.sign_in_path()
    command = [sys.executable, str(DOCS / "screenshot.py"), link, str(run.run.pk), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    today = json.loads((tmp_path / "pictures.json").read_text())
    kept = json.loads((DOCS / "pictures.json").read_text())
    assert today.keys() == kept.keys() == SIZES.keys()
    for name, size in SIZES.items():
        assert size_of(tmp_path / name) == size_of(DOCS / name) == size
        assert hashlib.sha256((DOCS / name).read_bytes()).hexdigest() == kept[name]["sha256"]
        assert today[name]["outline"] == kept[name]["outline"], f"take {name} again"
