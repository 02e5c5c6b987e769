"""Tests that the worker starts exactly once, whatever happens to the server.

A worker that is not a fork reports why.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from engine.preload.environment import LAUNCHER
from engine.preload.wire import MAX_BYTES, REFUSED
from tests.helpers.waiting import eventually
from workers.processes import has_ended

WORKER = """
import json, os, signal, sys
from pathlib import Path

threads = len(os.listdir("/proc/self/task"))
Path(sys.argv[1]).write_text(json.dumps({"pid": os.getpid(), "parent": os.getppid(),
    "threads": threads, "torch": "torch" in sys.modules, "marked": os.environ.get("MARK")}))
signal.alarm(120)  # whoever may have started it
signal.pause()
"""


class Raylet:
    """Starts launchers, as Ray's raylet does, in a session directory of its own."""

    def __init__(self, folder: Path):
        self.folder, self.started = folder, 0
        (folder / "session").mkdir()
        (folder / "worker.py").write_text(WORKER)
        command = [sys.executable, str(Path(__file__).with_name("raylet.py"))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)

    def start(self, *options, **environment):
        """Starts a worker; returns a function that waits for its report and launcher errors."""
        self.started += 1
        path = self.folder / f"report-{self.started}"
        errors = self.folder / f"errors-{self.started}"
        command = [sys.executable, "-I", "-S", str(LAUNCHER), *options]
        command += [str(self.folder / "worker.py")]
        command += [str(path), f"--temp-dir={self.folder}", "--session-name=session"]
        order = {"command": command, "errors": str(errors), "environment": environment}
        print(json.dumps(order), file=self.process.stdin, flush=True)

        def ended():
            text = eventually(lambda: path.exists() and path.read_text(), "a worker", 120)
            return json.loads(text), errors.read_text()

        return ended

    def server(self):
        """The server's process, as soon as it exists. Its forks have its command line and its
        environment too, and lower pids than it where pids have wrapped around."""

        def the_one():
            serving = {process.pid: process for process in self._serving()}
            roots = (one for one in serving.values() if one.ppid() not in serving)
            return next(roots, None)

        return eventually(the_one, "the server to start")

    def _serving(self):
        # By environment: the server is an orphan, because its launcher exits.
        mine = f"RAY_RAYLET_PID={self.process.pid}".encode()
        for process in psutil.process_iter(["cmdline"]):
            if str(LAUNCHER.with_name("server.py")) not in (process.info["cmdline"] or []):
                continue
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if mine in Path(f"/proc/{process.pid}/environ").read_bytes():
                    yield process


@pytest.fixture
def raylet(tmp_path):
    made = Raylet(tmp_path)
    yield made
    made.process.kill()
    made.process.wait()
    made.process.stdin.close()
    for report in tmp_path.glob("report-*"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(json.loads(report.read_text())["pid"], signal.SIGKILL)


def broken_torch(folder):
    """An environment in which importing torch fails with a message."""
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text("raise RuntimeError('no such processor')\n")
    return {"PYTHONPATH": str(folder)}


def test_a_failing_import_is_reported_and_costs_only_the_fork(raylet, tmp_path):
    environment = broken_torch(tmp_path)
    for ended in [raylet.start(**environment) for _ in range(2)]:
        worker, errors = ended()
        assert worker["parent"] == raylet.process.pid and not worker["torch"]
        assert "not forked from a preloaded process: NoServerError: RuntimeError: no such" in errors
    (log,) = (tmp_path / "session" / "preload").glob("*.log")
    assert "RuntimeError: no such processor" in log.read_text()


def test_a_directory_that_others_may_enter_is_not_trusted(raylet, tmp_path):
    open_to_others = tmp_path / "session" / "preload"
    open_to_others.mkdir()
    open_to_others.chmod(0o755)
    worker, errors = raylet.start()()
    assert worker["parent"] == raylet.process.pid
    assert "preload is not a directory that only this user owns and may enter" in errors


@pytest.mark.large
@pytest.mark.slow
def test_a_launcher_that_does_not_answer_in_time_is_told_the_setting(raylet, tmp_path):
    environment = {"GROVE_PRELOAD_ANSWER_SECONDS": "0.25"}
    raylet.start(**environment)()  # with the server, or without it if that was too short for it
    (path,) = (
        one for one in (tmp_path / "session" / "preload").iterdir() if one.is_socket()
    )  # fmt: skip
    late = (
        "no word of the launcher within 0.25 s; on a busy machine raise "
        "GROVE_PRELOAD_ANSWER_SECONDS or GROVE_PATIENCE"
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(str(path))  # as a launcher that orders nothing
        assert connection.recv(MAX_BYTES) == REFUSED + late.encode()
        assert connection.recv(MAX_BYTES) == b""
    assert late in path.with_name(f"{path.name}.log").read_text()


def test_an_interpreter_that_is_to_have_options_is_no_fork(raylet):
    worker, errors = raylet.start("-s")()
    assert worker["parent"] == raylet.process.pid
    assert "the interpreter is to have options: -s" in errors


@pytest.mark.slow
def test_a_kill_of_any_process_leaves_no_leftover_and_no_job_without_a_worker(raylet):
    waiting = [raylet.start(MARK="one") for _ in range(2)]
    raylet.server().kill()  # while it imports, and both wait for it
    for ended in waiting:
        worker, errors = ended()
        assert worker["parent"] == raylet.process.pid or worker["torch"], errors
    assert any("not forked" in ended()[1] for ended in waiting)

    (first, errors), (second, _) = (raylet.start(MARK="one")() for _ in range(2))
    server = raylet.server()
    assert first["parent"] == second["parent"] == server.pid, errors
    assert (first["torch"], first["threads"], first["marked"]) == (True, 1, "one")
    assert server.num_threads() == 1
    os.kill(first["pid"], signal.SIGKILL)
    eventually(lambda: not psutil.pid_exists(first["pid"]), "the server to reap a fork")

    raylet.process.kill()
    eventually(lambda: has_ended(server), "the server to end with its raylet")
    assert not has_ended(psutil.Process(second["pid"])), "a fork does not hang on its server"
