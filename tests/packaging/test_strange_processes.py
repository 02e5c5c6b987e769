"""Tests of commands in processes that are started strangely: no home, SIGCHLD ignored."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from engine.events.log import read_all
from tests.e2e.stack import ROOT, Stack
from tests.helpers.waiting import eventually, patience
from tests.workers.engines import small_engine
from workers.local.spawn import Account, command_of

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


SHOWS_ITS_TEXT = (
    "import os, sys; from django.conf import settings; "
    "print(ascii(settings.GROVE_VAR.name), sys.flags.utf8_mode, os.environ['PYTHONUTF8'])"
)


@pytest.mark.parametrize("locale", ["C", pytest.param("POSIX", marks=pytest.mark.large)])
def test_commands_of_the_server_have_utf8_in_any_locale(tmp_path, locale):
    other = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    other |= {"GROVE_VAR": str(tmp_path / "h\u00f6hle")}
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", SHOWS_ITS_TEXT]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **other}, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("'h\\xf6hle' 1 1\n", "")


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


UNSHARE = shutil.which("unshare")
NOBODY_KNOWS = ["unshare", "--user", "--map-user=54321", "--map-group=54321"]
IGNORING = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Runs Python with SIGCHLD ignored, as some supervisors of containers start a process."""

in_a_namespace = pytest.mark.skipif(
    not UNSHARE or subprocess.run([*NOBODY_KNOWS, "true"]).returncode != 0,
    reason="no account can be made up here: it needs user namespaces",
)


def strange(*command):
    return [*NOBODY_KNOWS, sys.executable, "-c", IGNORING, *map(str, command)]


def environment(**more):
    """The test's own, without a home and what stands for one."""
    left_out = ("HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
    return {n: v for n, v in os.environ.items() if n not in left_out} | more


def engine(*arguments):
    done = subprocess.run(
        strange("-m", "engine", *arguments), cwd=ROOT, env=environment(),
        capture_output=True, text=True, timeout=240 * patience(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@in_a_namespace
def test_a_child_sees_an_account_with_a_name_and_its_files_stay_this_ones(tmp_path):
    made = tmp_path / "made"
    code = "import os, pwd, sys; open(sys.argv[1], 'w'); print(pwd.getpwuid(os.getuid()).pw_uid)"
    account = Account(65534, 65534, is_name=True)
    command = command_of([sys.executable, "-I", "-c", code, str(made)], signal.SIGKILL, account)
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "65534\n"), done.stderr
    assert made.stat().st_uid == os.geteuid()


@pytest.mark.large
@in_a_namespace
def test_the_engine_trains_and_evaluates_for_an_account_that_nobody_knows(tmp_path):
    short = ("steps=1", "minutes=null", "trees_per_step=2", "validate_every=9")
    few = (
        "problems.train=9",
        "problems.validation=1",
        "problems.test=1",
        "search.nodes_per_tree=2",
    )
    engine("prepare", tmp_path / "run", "demo", *(f"training.{one}" for one in short), *few)
    engine("train", tmp_path / "run")
    assert [e.payload["state"] for e in read_all(tmp_path / "run") if e.kind == "run.state"][
        -1
    ] == "finished"
    some = ("--dataset", "generated", "--problems", "2", "--samples", "1", "--no-search")
    assert "pass@1/oak" in engine("evaluate", "--agents", "starter:oak", *some)


@pytest.mark.large
@pytest.mark.slow
@pytest.mark.service
@in_a_namespace
def test_up_serves_pages_and_trains_for_an_account_that_nobody_knows(tmp_path):
    var = tmp_path / "var"
    variables = {"GROVE_VAR": str(var), "GROVE_ENGINE_COMMAND": shlex.join(small_engine(steps=2))}
    without = ("DATABASE_URL", "BROKER_URL")
    env = {n: v for n, v in environment(**variables).items() if n not in without}
    with Stack(var, env, command=strange(ROOT / "manage.py", "up"), directory=ROOT) as stack:
        with httpx.Client(follow_redirects=True) as browser:
            assert browser.get(stack.sign_in_link()).status_code == 200
        run: Path = eventually(lambda: next((var / "runs").glob("*"), None), "a run")
        eventually(
            lambda: any(
                e.kind == "run.state" and e.payload["state"] == "finished" for e in read_all(run)
            ),
            "the end of the run",
        )
