"""Tests of what hostile programs try, and of the required outcome.

Each program runs for real. It never gets a value that it did not return, no process of it outlives
its job, and the next honest program is judged right.
"""

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from engine.config.sandbox import SandboxConfig
from engine.events.vocabulary import Verdict
from engine.problems.problem import CallTest, Problem
from engine.sandbox.guest import wire
from engine.sandbox.host.job import Job
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verify import verify
from tests.helpers.waiting import eventually, patience

pytestmark = pytest.mark.service

TESTS = (CallTest(([2, 1],), [1, 2]), CallTest(([3, 1],), [1, 3]))
SORT = Problem("sort", "Sort.", "solve", TESTS, TESTS)

CHEATS = {
    "exits at once": "import os\nos._exit(0)",
    "exits in the call": "import os\ndef solve(x): os._exit(0)",
    "raises SystemExit in a thread hook": "import sys\nsys.exit(0)",
    "prints what a judge would like": "def solve(x): print('PASSED', [1, 2])",
    "an object equal to everything": """
class Yes(list):
    def __eq__(self, other): return True
    def __hash__(self): return 0
def solve(x): return Yes()""",
    "a hostile repr": """
class Liar:
    def __repr__(self): return '[1, 2]'
def solve(x): return Liar()""",
    "a hostile class": """
class Meta(type):
    def __getattribute__(cls, name): raise SystemExit(0)
class Liar(metaclass=Meta): pass
def solve(x): return Liar()""",
    "a patched repr": """
import builtins
builtins.repr = lambda value: '[1, 2]'
def solve(x): return []""",
    "an exception that cannot be shown": """
class Bad(Exception):
    def __str__(self): raise MemoryError
def solve(x): raise Bad()""",
    "a forged frame on every descriptor": """
import os, struct
def solve(x):
    text = b'[1, 2]'
    for fd in range(16):
        for index in range(4):
            try: os.write(fd, struct.pack('<IBI', index, 0, len(text)) + text)
            except OSError: pass
    return None""",
    "noise on every descriptor": """
import os
for fd in range(16):
    try: os.write(fd, b'PASSED' * 1000)
    except OSError: pass
def solve(x): return sorted(x)""",
    "closing every descriptor": "import os\nos.closerange(0, 64)\ndef solve(x): return sorted(x)",
    "looking for expected values in frames": """
import sys, gc
def solve(x):
    frame = sys._getframe()
    while frame:
        for value in frame.f_locals.values():
            if isinstance(value, (list, tuple)) and [1, 3] in value: return [1, 3]
        frame = frame.f_back
    for value in gc.get_objects():
        if type(value).__name__ == 'CallTest': return value.expected""",
    "a value that contains itself": "def solve(x):\n    x[0] = x\n    return x",
    "a value nested without end": """
def solve(x):
    for _ in range(10 ** 5): x = [x]
    return x""",
    "deep recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef solve(x): return solve(x)",
}


def leftovers(sandbox):
    """Processes below the sandbox's zygotes, other than each one's single init."""
    results = []
    for pid in sandbox.zygote_pids():
        for process in psutil.Process(pid).children(recursive=True):
            if process.status() == psutil.STATUS_ZOMBIE or process.ppid() != pid:
                results.append(process)
    return results


@pytest.mark.parametrize("program", CHEATS.values(), ids=CHEATS.keys())
def test_a_cheat_earns_nothing(sandbox, honest, program):
    (result,) = verify(sandbox, [(SORT, program)])
    assert not result.passed
    assert result.fraction == 0.0
    assert result.verdict != Verdict.SANDBOX_FAILURE
    assert not leftovers(sandbox)
    honest()


BOMBS = {
    "forks": "import os\ndef solve():\n    while True:\n        os.fork()",
    "threads": """
import threading, time
def solve():
    while True: threading.Thread(target=time.sleep, args=(60,)).start()""",
    "executes": "import subprocess\ndef solve(): return subprocess.run(['/bin/true']).returncode",
    "daemon": """
import os
def solve():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: pass
    return 1""",
    "kills its parent": "import os\ndef solve():\n    os.kill(os.getppid(), 9)\n    return 1",
    "kills everybody": "import os\ndef solve():\n    os.kill(-1, 9)\n    return 1",
    "kills its group": "import os\ndef solve():\n    os.killpg(0, 9)\n    return 1",
    "traces its parent": """
import ctypes, os
def solve():
    if ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0: return 1
    raise PermissionError""",
    "opens a socket": "import socket\ndef solve():\n    socket.socket()\n    return 1",
    "connects": "import socket\ndef solve():\n    socket.create_connection(('127.0.0.1', PORT))",
    "writes a file": "def solve():\n    open('/grove-was-here', 'w').write('x')\n    return 1",
    "writes beside its library": """
import os
def solve():
    open(os.path.join(os.path.dirname(os.__file__), 'owned.py'), 'w').write('x')
    return 1""",
    "becomes root": "import os\ndef solve():\n    os.setuid(0)\n    return 1",
    "enters a namespace": """
import ctypes
def solve():
    if ctypes.CDLL(None).unshare(0x10000000) == 0: return 1
    raise PermissionError""",
    "raises its limits": """
import resource
def solve():
    resource.setrlimit(resource.RLIMIT_NPROC, (100, 100))
    return 1""",
}


@pytest.mark.parametrize("program", BOMBS.values(), ids=BOMBS.keys())
def test_a_break_out_is_refused(sandbox, outcomes, honest, program):
    Path("/grove-was-here").unlink(missing_ok=True)  # of an earlier, weaker sandbox
    with socket.create_server(("127.0.0.1", 0)) as server:
        (outcome,) = outcomes(program.replace("PORT", str(server.getsockname()[1])))
    assert outcome.verdict in (Verdict.RUNTIME_ERROR, Verdict.KILLED, Verdict.TIME_LIMIT), outcome
    assert not leftovers(sandbox)
    assert not Path("/grove-was-here").exists()
    honest()


def test_ignored_signals_do_not_save_a_program_from_its_deadline(outcomes, honest):
    program = """
import signal
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
def solve():
    while True:
        try:
            while True: pass
        except BaseException: pass
"""
    # An hour of wall time: what ends it is its limit of CPU seconds.
    (outcome,) = outcomes(program, wall_seconds=3600.0)
    assert outcome.verdict == Verdict.TIME_LIMIT
    honest()


def test_a_program_that_closes_its_channel_and_goes_on_is_ended(outcomes, honest):
    (outcome,) = outcomes("import os\ndef solve():\n    os.close(3)\n    while True: pass")
    assert outcome.verdict == Verdict.TIME_LIMIT
    honest()


def test_a_flood_through_the_channel_is_cut_off(outcomes, honest):
    flood = "import os\ndef solve():\n    while True: os.write(3, b'x' * 60000)"
    (outcome,) = outcomes(flood)
    assert outcome.verdict in (Verdict.OUTPUT_LIMIT, Verdict.RUNTIME_ERROR)
    honest()


def test_a_program_sees_no_environment_and_none_of_our_files(outcomes, monkeypatch):
    monkeypatch.setenv("GROVE_TEST_SECRET", "hidden")
    program = """
import os, sys
def solve(paths):
    seen = [dict(os.environ), sorted(sys.argv)]
    for path in paths:
        try: seen.append(open(path).read())
        except OSError as error: seen.append(type(error).__name__)
    return seen
"""
    ours = [__file__, f"/proc/{os.getpid()}/environ", f"/proc/{os.getpid()}/mem", "/etc/shadow"]
    (outcome,) = outcomes(program, (ours,))
    environment, arguments, *files = outcome.value
    assert (environment, arguments) == ({}, ["program.py"])
    assert set(files) <= {"FileNotFoundError", "PermissionError"}


def test_a_program_has_no_descriptor_of_ours(outcomes):
    program = """
import os
def solve():
    found = []
    for fd in range(1024):
        try: found.append((fd, os.fstat(fd).st_mode >> 12))
        except OSError: pass
    return found
"""
    (outcome,) = outcomes(program)
    # Three /dev/null, and the file in memory to which it writes its frames.
    assert outcome.value == [(0, 2), (1, 2), (2, 2), (3, 8)]


def test_as_root_a_program_runs_as_nobody_else(outcomes):
    (outcome,) = outcomes("import os\ndef solve(): return [*os.getresuid(), *os.getgroups()]")
    real, *others = outcome.value
    assert others == [real, real]
    if os.getuid() == 0:
        assert real > 65535


def test_one_slow_program_does_not_delay_the_verdict_of_another(limits):
    """The slow one never ends by itself: it is killed once all the others have their verdicts."""
    slow = Job("import time\ndef solve(): time.sleep(10**6)", "solve", ((),))
    fast = Job("def solve(): return 1", "solve", ((),))
    ended = []

    def task(run, job):
        execution = run(job)
        ended.append(job)
        return execution

    with Sandbox(SandboxConfig(workers=2, **limits)) as sandbox, ThreadPoolExecutor(1) as elsewhere:
        sandbox.run([fast])
        quiet = len(family(sandbox.zygote_pids()[0]))
        future = elsewhere.submit(sandbox.each, task, [slow, *[fast] * 20])

        def running():
            """The chain of processes of the slow program, once it alone is left."""
            if len(ended) < 20:
                return None
            longest = max(map(family, sandbox.zygote_pids()), key=len)
            return longest if len(longest) > quiet else None

        chain = eventually(running, "the verdicts of all others")
        assert slow not in ended
        os.kill(chain[-1], signal.SIGKILL)
        first, *others = future.result(60 * patience())
    assert first.outcomes[0].verdict == Verdict.SANDBOX_FAILURE
    assert [result.outcomes[0].value for result in others] == [1] * 20


def alive(pids):
    return [pid for pid in pids if psutil.pid_exists(pid) and _state(pid) != psutil.STATUS_ZOMBIE]


def _state(pid):
    try:
        return psutil.Process(pid).status()
    except psutil.NoSuchProcess:
        return psutil.STATUS_ZOMBIE


def family(pid):
    return [pid, *(process.pid for process in psutil.Process(pid).children(recursive=True))]


WAITS_FOR_A_SIGNAL = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
def solve():
    signal.sigwait([signal.SIGURG])
    return 2
"""
"""By default SIGURG does nothing, so one that comes before the program waits does no harm."""


def test_a_killed_zygote_is_replaced_and_its_job_run_again(limits):
    config = SandboxConfig(workers=1, **limits)
    with Sandbox(config) as sandbox, ThreadPoolExecutor(1) as elsewhere:
        fast = Job("def solve(): return 1", "solve", ((),))
        sandbox.run([fast])
        (first,) = sandbox.zygote_pids()
        members = family(first)
        future = elsewhere.submit(sandbox.run, [Job(WAITS_FOR_A_SIGNAL, "solve", ((),))])
        eventually(lambda: len(family(first)) > len(members), "the program to start")
        members = family(first)
        os.kill(first, signal.SIGKILL)

        def goes_on():
            """Lets the program go on that runs again, under a new zygote."""
            for zygote in set(sandbox.zygote_pids()) - {first}:
                for pid in family(zygote)[1:]:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGURG)
            return future.done()

        eventually(goes_on, "the program to run again")
        assert future.result()[0].outcomes[0].value == 2
        assert sandbox.zygote_pids() != [first]
        eventually(lambda: not alive(members), "the killed service's processes to end")
        assert sandbox.run([fast])[0].outcomes[0].value == 1


def test_a_program_that_was_killed_from_outside_is_no_wrong_answer(limits):
    """Kills as the kernel does when memory runs out, which no program can do to itself."""
    with Sandbox(SandboxConfig(workers=1, **limits)) as sandbox, ThreadPoolExecutor(1) as elsewhere:
        sandbox.run([Job("def solve(): return 1", "solve", ((),))])
        (zygote,) = sandbox.zygote_pids()
        quiet = family(zygote)
        slow = Job("import time\ndef solve(): time.sleep(10**6)", "solve", ((),))
        future = elsewhere.submit(sandbox.run, [slow])
        eventually(lambda: len(family(zygote)) > len(quiet), "the slow program to start")
        (child,) = set(family(zygote)) - set(quiet)
        os.kill(child, signal.SIGKILL)
        (execution,) = future.result(60 * patience())
        assert execution.outcomes[0].verdict == Verdict.SANDBOX_FAILURE
        assert "killed from outside" in execution.outcomes[0].error
        assert sandbox.zygote_pids() == [zygote]


def test_closing_leaves_no_process(limits):
    with Sandbox(SandboxConfig(workers=2, **limits)) as sandbox:
        sandbox.run([Job("import time\ndef solve(): time.sleep(0.2)", "solve", ((),))] * 2)
        members = [pid for zygote in sandbox.zygote_pids() for pid in family(zygote)]
    assert len(members) >= 2
    eventually(lambda: not alive(members), "the sandbox's processes to end")


OWNER = """
from engine.config.schema import SandboxConfig
from engine.sandbox.host.job import Job
from engine.sandbox.host.sandbox import Sandbox

sandbox = Sandbox(SandboxConfig(workers=1, wall_seconds=600))
sandbox.run([Job("def solve(): return 1", "solve", ((),))])
print(*sandbox.zygote_pids(), flush=True)
input()
sandbox.run([Job("import time\\ndef solve(): time.sleep(10**6)", "solve", ((),))])
"""


def test_nothing_survives_an_owner_that_was_killed():
    command = [sys.executable, "-c", OWNER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as owner:
        zygote = int(owner.stdout.readline())
        quiet = len(family(zygote))
        print(file=owner.stdin, flush=True)
        eventually(lambda: len(family(zygote)) > quiet, "the slow program to start")
        members = family(zygote)
        owner.send_signal(signal.SIGKILL)
    eventually(lambda: not alive(members), "the sandbox's processes to end")


def test_a_program_reads_no_packages_and_no_name_of_the_host(outcomes, sandbox):
    if "mount" not in sandbox.walls():
        pytest.skip("this host's tier shows them")
    program = """
import os
def solve(folders):
    return os.uname().nodename, [f for f in folders if os.path.isdir(f) and os.listdir(f)]
"""
    library = Path(os.__file__).resolve().parent
    folders = [f"{library}/site-packages", f"{library}/dist-packages"]
    folders.append("/usr/lib/python3/dist-packages")
    (outcome,) = outcomes(program, (folders,))
    assert outcome.value == ("sandbox", [])


def test_no_module_of_the_sandbox_can_be_imported(outcomes):
    """A program that names one of its own so must not get the sandbox's."""
    program = """
import contextlib, importlib
def solve(names):
    imported = []
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
            imported.append(name)
    return imported
"""
    names = {path.stem for path in Path(wire.__file__).parent.glob("*.py")} - {"__init__"}
    assert {"child", "shapes", "wire"} <= names
    (outcome,) = outcomes(program, (sorted(names),))
    assert (outcome.verdict, outcome.value) == (None, [])


def test_a_site_that_keeps_its_files_to_itself_still_runs_programs(limits):
    """The root directory built for programs is for their accounts, not for ours (umask 077)."""
    before = os.umask(0o077)
    try:
        with Sandbox(SandboxConfig(workers=1, wall_seconds=limits["wall_seconds"])) as sandbox:
            program = "import base64, colorsys\ndef solve(x): return sorted(x)"
            (result,) = verify(sandbox, [(SORT, program)])
    finally:
        os.umask(before)
    assert result.verdict is Verdict.PASSED, result.error
