"""The image of `deploy/Dockerfile` without a daemon: its entry point, as a container runs it.

A container here is a mount namespace whose root nobody can write to, an account that the machine
does not know, and an environment with the image's variables alone. The packages are those of the
wheel with its declared requirements.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers.waiting import patience
from tests.packaging.builds import ROOT, Environment

ENTRYPOINT = ROOT / "deploy" / "entrypoint.sh"
UNKNOWN = 23_456
"""An account that no machine of ours has."""
VAR = "/srv"
"""Where the data directory is mounted. Its folders are open to every account, as those of the image
are: access(2) heeds no capability of an account, so it finds nothing in pytest's closed ones."""
_MOUNTS = """
set -e
mount --make-rprivate /
mount --bind {var} {mounted}
mount --bind /dev/shm /dev/shm
mount -o remount,bind,ro /
exec "$@"
"""


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


def as_account(number: int) -> list[str]:
    """Returns the words before a command that run it as this account, without a name or groups.

    Python and pytest's folders may be in directories closed to others: it may pass and read them,
    but writes only what an account of its number may.
    """
    rights = "-all,+dac_read_search"
    return [
        *("setpriv", "--reuid", str(number), "--regid", str(number), "--clear-groups"),
        *("--inh-caps", rights, "--ambient-caps", rights, "--bounding-set", rights),
        "--no-new-privs",
    ]


@dataclass(frozen=True)
class Container:
    """What `docker run --read-only --user 23456 --volume VAR:/var/lib/grove IMAGE ROLE` starts."""

    packages: Environment
    var: Path
    variables: dict[str, str]

    def __post_init__(self) -> None:
        self.var.mkdir(exist_ok=True)
        os.chown(self.var, UNKNOWN, UNKNOWN)

    def command(self, *words: str, account: int = UNKNOWN) -> list[str]:
        """Returns the command line, without its environment."""
        mounts = _MOUNTS.format(var=shlex.quote(str(self.var)), mounted=VAR)
        contained = ["unshare", "--mount", "sh", "-c", mounts, "sh", *as_account(account)]
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
