"""A site of the image's processes, on a database and a broker of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.helpers.ports import a_port
from tests.helpers.rest_runs import PASSWORD
from tests.helpers.waiting import eventually, patience
from tests.packaging.builds import Environment
from tests.packaging.image import UNKNOWN, Container

TOKEN = "a-token-of-16-chars"
"""Of readers of metrics."""


def secrets(folder: Path, **values: str) -> dict[str, str]:
    """Returns the variables that name a file of each secret, which the container's account alone
    may read."""
    folder.mkdir(mode=0o700)
    for name, text in values.items():
        (folder / name).write_text(f"{text}\n")
        (folder / name).chmod(0o400)
    for path in (folder, *folder.iterdir()):
        os.chown(path, UNKNOWN, UNKNOWN)
    return {f"{name}_FILE": str(folder / name) for name in values}


def socket_folder(database_url: str) -> Path:
    return Path(parse_qs(urlsplit(database_url).query)["host"][0])


@dataclass
class Site:
    """Web and worker, as `deploy/compose.yaml` starts them."""

    packages: Environment
    folder: Path
    """Empty."""
    database_url: str
    broker_url: str
    port: int = field(default_factory=a_port)
    of_worker: int = field(default_factory=a_port)
    """Port of the worker's metrics."""
    container: Container = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.folder.chmod(0o755)  # whatever the umask
        files = secrets(
            self.folder / "secrets", DATABASE_URL=self.database_url, GROVE_SECRET_KEY="k" * 40,
            GROVE_METRICS_TOKEN=TOKEN,
        )  # fmt: skip
        self.container = Container(self.packages, self.folder / "var", {
            **files, "BROKER_URL": self.broker_url, "GROVE_PORT": str(self.port),
            "GROVE_WORKER_METRICS": f"127.0.0.1:{self.of_worker}",
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
        }, (socket_folder(self.database_url),))  # fmt: skip

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token_file(self) -> Path:
        return self.folder / "secrets" / "GROVE_METRICS_TOKEN"

    def log(self, role: str) -> str:
        return (self.folder / f"{role}.log").read_text()

    def does(self, *words: str) -> str:
        """Runs a command in the container to its end, which has to be good; returns its output."""
        done = self.container.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def running(self) -> Iterator[Site]:
        """Starts web and worker and waits until they are ready; SIGTERM has to end both."""
        with ExitStack() as roles:
            web, worker = (
                roles.enter_context(self.container.role(role, self.folder / f"{role}.log"))
                for role in ("web", "worker")
            )
            eventually(lambda: answers(f"{self.address}/readyz"), "a ready web process", 200)
            yield self
        assert worker.returncode == 0, self.log("worker")
        assert web.returncode in (0, -signal.SIGTERM), self.log("web")


def answers(url: str, headers: dict[str, str] | None = None) -> bool:
    try:
        return httpx.get(url, headers=headers, timeout=10 * patience()).status_code == 200
    except httpx.TransportError:
        return False
