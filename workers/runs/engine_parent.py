"""Parent of one engine; run as a script: `python -I -S engine_parent.py RUN_DIR COMMAND...`.

Invariants:
- It is the engine's parent from start to end, so the exit status is known and written to
  `RUN_DIR/engine.exit`, even when the worker that started the engine died long ago.
- Nothing that the engine started outlives it: orphans become children of this process (it is a
  subreaper), and they are killed once the engine has ended.
- If this process is killed, the kernel kills the engine with it.

It forwards SIGTERM (the engine makes a checkpoint and stops); SIGQUIT kills the engine.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
PID_FILE = "engine.json"
EXIT_FILE = "engine.exit"
CHILD = Path(__file__).parents[1] / "local" / "child.py"


def main(run_dir: Path, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    (run_dir / EXIT_FILE).unlink(missing_ok=True)
    wrapped = [sys.executable, "-I", "-S", str(CHILD), str(os.getpid())]
    wrapped += [str(int(signal.SIGKILL)), "-", "0", *command]
    # Signals are blocked until there is an engine to forward them to.
    handled = {signal.SIGTERM, signal.SIGQUIT}
    signal.pthread_sigmask(signal.SIG_BLOCK, handled)
    engine = subprocess.Popen(wrapped, process_group=0, preexec_fn=_unblock)
    signal.signal(signal.SIGTERM, lambda *_: _send(engine.pid, signal.SIGTERM))
    signal.signal(signal.SIGQUIT, lambda *_: _send(engine.pid, signal.SIGKILL))
    _write(run_dir / PID_FILE, {"pid": os.getpid(), "engine": engine.pid, "time": time.time()})
    signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)
    code = _wait_for(engine.pid)
    _kill_orphans(engine.pid)
    _write(run_dir / EXIT_FILE, {"code": code})


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, set())


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _wait_for(engine: int) -> int:
    """Reaps processes until the engine ends; returns its exit code, or minus the signal."""
    while True:
        pid, status = os.wait()
        if pid == engine:
            return os.waitstatus_to_exitcode(status)


def _kill_orphans(group: int) -> None:
    """SIGKILLs the engine's group and every child, until no child is left to wait for."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    while True:
        for pid in _children():
            _send(pid, signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def _children() -> list[int]:
    children = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            # The name, in parentheses, may hold spaces: the parent is the second field after it.
            if int(entry.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                children.append(int(entry.parent.name))
    return children


def _write(path: Path, content: dict[str, float]) -> None:
    draft = path.with_name(path.name + ".draft")
    draft.write_text(json.dumps(content))
    draft.replace(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
