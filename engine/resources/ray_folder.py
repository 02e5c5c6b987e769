"""Folder of the Ray that an engine starts for its run, `RUN_DIR/ray`: Ray's sockets, logs and
spilled objects, and the token of this Ray.

The kernel limits the path of a Unix socket to 107 bytes, of which those of Ray take 64 below its
folder. A run directory is usually too long for that, so Ray is given a short name of the folder: a
symbolic link in a directory of the system's temporary folder. All files are in the run directory.

Invariants:
- Only the account of the engine can enter the folder, whatever modes Ray sets below it, and the
  directory of the link.
- Both are removed when the engine ends. Those of a killed engine are removed by the worker that
  watched it, or before the next engine of the run directory starts Ray.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path

from engine.config.deadlines import RAY_STOP

FOLDER = "ray"
_LONGEST = 107 - len("/session_2026-01-01_00-00-00_000000_4194304/sockets/plasma_store")
"""Longest path, in bytes, of a folder in which Ray's sockets have room."""


class RayFolder:
    """The folder of one Ray; made by `RayFolder(run_dir)`, removed by `close`."""

    def __init__(self, run_dir: Path | None = None):
        """Without a run directory the folder is in the system's temporary folder.

        Raises:
            OSError: it cannot be created.
        """
        self._owned = run_dir is None
        self._run_dir = Path(run_dir or tempfile.mkdtemp(prefix="grove-")).absolute()
        remove_ray_folder(self._run_dir)
        self.path = self._run_dir / FOLDER
        self.path.mkdir(mode=0o700)
        self.token_file = self.path / "token"
        write_private(self.token_file, secrets.token_hex(32))
        files = self.path / "files"
        files.mkdir()
        self._lock = -1
        self.for_ray = files if len(os.fsencode(files)) <= _LONGEST else self._short_name(files)
        """The folder in which Ray puts its files, by a path that leaves room for its sockets."""

    def close(self) -> None:
        """Removes the folder. Call after Ray has ended."""
        remove_ray_folder(self._run_dir)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        if self._owned:
            shutil.rmtree(self._run_dir, ignore_errors=True)

    def _short_name(self, files: Path) -> Path:
        parent = tempfile.gettempdir()
        if len(os.fsencode(parent)) > _LONGEST - len("/grove-12345678/r"):
            parent = "/tmp"  # nosec B108
        short = Path(tempfile.mkdtemp(prefix="grove-", dir=parent))
        # Services that remove old files leave a locked directory alone (systemd-tmpfiles).
        self._lock = os.open(short, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        write_private(self.path / "short_name", str(short))
        (short / "r").symlink_to(files)
        return short / "r"


def remove_ray_folder(run_dir: Path) -> None:
    """Removes what a Ray of this run directory has left, if anything; retries for `RAY_STOP`
    while ending processes still write there. Call only while no engine runs there."""
    folder = run_dir.absolute() / FOLDER
    if not folder.is_dir() or folder.is_symlink():
        return
    _remove_short_name(folder)
    deadline = time.monotonic() + RAY_STOP.seconds
    shutil.rmtree(folder, ignore_errors=True)
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
        shutil.rmtree(folder, ignore_errors=True)


def _remove_short_name(folder: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        short = Path((folder / "short_name").read_text())
        # Only a link to this folder is ours: the name may have been given to another since.
        if (short / "r").readlink() == folder / "files":
            (short / "r").unlink()
            short.rmdir()


def write_private(path: Path, text: str) -> None:
    """Creates a file that only this account can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
