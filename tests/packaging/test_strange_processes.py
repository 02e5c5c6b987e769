"""Tests of commands in processes that are started strangely: no home, SIGCHLD ignored."""

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.service

AS_NOBODY_KNOWN = """
import contextlib, io, os, sys
from webapp.client.cli import main
# All modules are loaded now: the account may not enter the folders of root.
with contextlib.redirect_stderr(io.StringIO()):
    main(sys.argv[1:])
del os.environ["HOME"]
os.setuid(54321)
sys.exit(main(sys.argv[1:]))
"""
REACHED = {"GROVE_ADDRESS": "http://127.0.0.1:9", "GROVE_TOKEN": "grove_x\n"}


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another account, which only root can")
@pytest.mark.parametrize(
    ("variables", "arguments", "status", "said"),
    [
        (REACHED, ["runs"], 3, "the server cannot be reached"),
        ({"GROVE_ADDRESS": "http://127.0.0.1:9"}, ["runs"], 1, "no home folder: set GROVE_ADDRESS"),
        ({**REACHED, "GROVE_TOKEN": "grove\u00e4x"}, ["runs"], 1, "GROVE_TOKEN: its character 6"),
    ],
)
def test_an_unknown_account_without_a_home_gets_one_line(
    tmp_path, variables, arguments, status, said
):
    home = {"HOME": str(tmp_path), "PYTHONUTF8": "1"}
    left = {n: v for n, v in os.environ.items() if n != "XDG_CONFIG_HOME"} | home
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY_KNOWN, *arguments],
        env={**left, **variables}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (status, "")
    (line,) = done.stderr.splitlines()
    assert said in line and "grove_x" not in line and "grove\u00e4x" not in line


@pytest.mark.parametrize(
    ("module", "arguments"),
    [("engine.__main__", "['config', 'demo']"), ("webapp.manage", "['manage.py', 'version']")],
)
def test_a_sigchld_that_is_ignored_is_not_for_children(module, arguments):
    assert_restored(f"""
from {module} import main
assert signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
try:
    main({arguments})
except SystemExit:
    pass
""")


@pytest.mark.parametrize("module", ["workers.app", "webapp.config.asgi"])
def test_nor_is_it_in_servers_of_others_that_import_ours(module):
    """`celery -A workers.app worker` and `uvicorn webapp.config.asgi:application`."""
    assert_restored(f"import {module}")


def test_outside_the_main_thread_it_stays_as_it_is():
    assert_restored(
        """
import threading
from engine.resources.child_processes import restore_sigchld
other = threading.Thread(target=restore_sigchld)
other.start()
other.join()
assert signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
restore_sigchld()
"""
    )


def assert_restored(code):
    code = f"""
import signal
{code}
import subprocess, sys
print(subprocess.run([sys.executable, "-c", "raise SystemExit(3)"]).returncode)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )  # fmt: skip
    assert done.stdout.splitlines()[-1:] == ["3"], done.stderr
