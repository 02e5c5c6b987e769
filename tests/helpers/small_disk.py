"""A small file system of a test's own, mounted for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


class SmallDisk:
    """A file system of `size` bytes at `path`, which is created; skips the test where none can be
    mounted."""

    def __init__(self, path: Path, size: int, mode: int = 0o1777):
        self.path = path
        path.mkdir()
        self._run("mount", "-t", "tmpfs", "-o", f"size={size},mode={mode:o}", "tmpfs", str(path))

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")

    def resize(self, size: int) -> None:
        self._run("mount", "-o", f"remount,size={size}", str(self.path))

    def free(self) -> int:
        result = os.statvfs(self.path)
        return result.f_bavail * result.f_frsize

    def fill(self, left: int) -> None:
        (self.path / "ballast").write_bytes(b"x" * max(0, self.free() - left))

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.path)], check=True)
