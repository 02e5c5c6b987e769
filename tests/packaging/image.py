"""The image of `deploy/Dockerfile` without a daemon: its entry point, as a container runs it.

A container here is a mount namespace whose root nobody can write to, an account that the machine
does not know, without any capability, the system calls that Docker's default profile leaves, and an
environment with the image's variables alone. The packages are those of the wheel with its declared
requirements.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers.waiting import patience
from tests.packaging.builds import ROOT, Environment

ENTRYPOINT = ROOT / "deploy" / "entrypoint.sh"
PROFILE = Path(__file__).with_name("syscalls_of_docker.py")
UNKNOWN = 23_456
"""An account that no machine of ours has."""
VAR = "/srv"
"""Where the data directory is mounted. Its folders are open to every account, as those of the image
are: access(2) heeds no capability of an account, so it finds nothing in pytest's closed ones."""
_MOUNTS = """
set -e
umask 022
mount --make-rprivate /
mount --bind {var} {mounted}
mount --bind /dev/shm /dev/shm
{opened}
mount -o remount,bind,ro /
exec "$@"
"""
_OPENED = "/mnt"
"""Where folders are kept while what is above them is covered."""


def can_contain() -> bool:
    """Whether this process may make a mount namespace and change its account."""
    tools = all(map(shutil.which, ("unshare", "setpriv", "mount")))
    if not tools or os.geteuid() != 0:
        return False
    probe = ["unshare", "--mount", "sh", "-c", "mount --make-rprivate / && mount --bind /mnt /mnt"]
    return subprocess.run(probe, capture_output=True).returncode == 0


needs_containment = pytest.mark.skipif(
    not can_contain(), reason="needs root, and leave to make a mount namespace"
)


def as_account(number: int, rights: str = "-all") -> list[str]:
    """Returns the words before a command that run it as this account, without a name or groups,
    and with no capabilities but those of `rights`."""
    return [
        *("setpriv", "--reuid", str(number), "--regid", str(number), "--clear-groups"),
        *("--inh-caps", rights, "--ambient-caps", rights, "--bounding-set", rights),
        "--no-new-privs",
    ]


def opened(folders: list[Path]) -> str:
    """Returns shell commands that let every account pass to these folders, in this namespace alone:
    the closed ones above them (/root, pytest's own) are covered by empty ones.

    In an image every account may read Python and Grove. A capability to read closed folders
    (CAP_DAC_READ_SEARCH) is no substitute: the sandbox enters a user namespace, where it does not
    hold for files of accounts outside.
    """
    folders = sorted({folder.resolve() for folder in folders})
    tops = {top for folder in folders if (top := _first_closed_above(folder))}
    lines = [f"mount -t tmpfs -o mode=755 none {_OPENED}"] if tops else []
    below = [one for one in folders if any(top in one.parents for top in tops)]
    kept = {folder: f"{_OPENED}/{number}" for number, folder in enumerate(below)}
    for folder, place in kept.items():
        lines += [f"mkdir {place}", f"mount --rbind {shlex.quote(str(folder))} {place}"]
    lines += [f"mount -t tmpfs -o mode=755 none {shlex.quote(str(top))}" for top in sorted(tops)]
    for folder, place in kept.items():
        path = shlex.quote(str(folder))
        lines += [f"mkdir -p {path}", f"mount --rbind {place} {path}"]
    return "\n".join(lines)


def _first_closed_above(folder: Path) -> Path | None:
    above = reversed(folder.parents)
    return next((one for one in above if not one.stat().st_mode & stat.S_IXOTH), None)


@dataclass(frozen=True)
class Container:
    """What `docker run --read-only --user 23456 --volume VAR:/var/lib/grove IMAGE ROLE` starts."""

    packages: Environment
    var: Path
    variables: dict[str, str]
    reaches: tuple[Path, ...] = ()
    """Further folders of the machine, such as that of a database's socket."""
    may_unshare: bool = False
    """Whether it may make namespaces, which Docker's default profile refuses."""

    def __post_init__(self) -> None:
        self.var.mkdir(exist_ok=True)
        self.var.parent.chmod(0o755)  # pytest makes it for itself
        subprocess.run(["chmod", "--recursive", "a+rX", self.packages.folder], check=True)
        os.chown(self.var, UNKNOWN, UNKNOWN)

    def command(self, *words: str, account: int = UNKNOWN) -> list[str]:
        """Returns the command line, without its environment."""
        folders = [
            Path(sys.base_prefix), Path(sysconfig.get_path("purelib")), self.packages.folder,
            self.var.parent, ROOT / "deploy", PROFILE.parent, *self.reaches,
        ]  # fmt: skip
        mounts = _MOUNTS.format(var=shlex.quote(str(self.var)), mounted=VAR, opened=opened(folders))
        contained = ["unshare", "--mount", "sh", "-c", mounts, "sh", *as_account(account)]
        if not self.may_unshare:
            contained += [str(self.packages.python), "-I", "-S", str(PROFILE)]
        return [*contained, "sh", str(ENTRYPOINT), *words]

    @property
    def environment(self) -> dict[str, str]:
        """Returns the variables of the image: neither HOME nor USER is among them."""
        path = f"{self.packages.python.parent}:{os.environ['PATH']}"
        return {
            "PATH": path, "GROVE_VAR": VAR, "GROVE_LOG_FORMAT": "json",
            "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
            "GROVE_PATIENCE": str(patience()), **self.variables,
        }  # fmt: skip

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end."""
        return subprocess.run(
            self.command(*words), env=self.environment, cwd="/", capture_output=True,
            text=True, stdin=subprocess.DEVNULL, timeout=300 * patience(),
        )  # fmt: skip

    @contextmanager
    def role(self, name: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
        """A process of the entry point; SIGTERM, as `docker stop` sends it, has to end it."""
        with log.open("wb") as output:
            process = subprocess.Popen(
                self.command(name), env=self.environment, cwd="/", stdout=output, stderr=output
            )
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            process.wait(120 * patience())
        finally:
            process.kill()
            process.wait(10 * patience())
