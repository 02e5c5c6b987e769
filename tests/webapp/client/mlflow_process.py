"""MLflow's own server as a process, at a port of the system's choice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.waiting import eventually

_READY = re.compile(r"Uvicorn running on (http://127\.0\.0\.1:\d+)")


@dataclass
class Server:
    process: subprocess.Popen
    address: str

    def kill(self) -> None:
        """Kills the server and its workers, as a machine that loses its power."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)


@contextmanager
def a_mlflow_server(store: Path) -> Iterator[Server]:
    """Serves what is in the folder, SQLite and artifacts, to which a later server adds."""
    store.mkdir(exist_ok=True)
    command = [
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", "0",
        "--workers", "1", "--backend-store-uri", f"sqlite:///{store}/mlflow.db",
        "--artifacts-destination", str(store / "artifacts"), "--serve-artifacts",
    ]  # fmt: skip
    log = store / "server.log"
    quiet = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=store,
            env={**os.environ, **quiet}, start_new_session=True,
        )  # fmt: skip
    server = Server(process, "")

    def address() -> str:
        assert process.poll() is None, log.read_text()
        found = _READY.search(log.read_text())
        return found[1] if found else ""

    try:
        eventually(lambda: bool(address()), "MLflow's server", 120)
        server.address = address()
        yield server
    finally:
        server.kill()
