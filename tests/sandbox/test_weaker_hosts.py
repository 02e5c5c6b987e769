"""On a host that allows no namespaces, uid and system call filter still hold."""

import json
import subprocess
import sys

from engine.events import Verdict

# Refuses unshare(2) to itself and all it starts, as container runtimes do.
OWNER = """
import ctypes, json, os, sys
from engine.config import SandboxConfig
from engine.sandbox import seccomp
from engine.sandbox.job import Job
from engine.sandbox.sandbox import Sandbox

unshare = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
program, libc = seccomp.assemble({unshare: [seccomp.REFUSE]}, [seccomp.ALLOW]), ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
with Sandbox(SandboxConfig(workers=1, cpu_seconds=0.4)) as sandbox:
    jobs = [Job(text, "solve", ((),)) for text in json.load(sys.stdin)]
    outcomes = [execution.outcomes[0] for execution in sandbox.run(jobs)]
    print(json.dumps([sandbox.walls(), [[o.verdict, o.value] for o in outcomes]]))
"""
REFUSED = [
    "import os\ndef solve(): os.kill(os.getppid(), 9)",
    "import os\ndef solve(): os.kill(-1, 9)",
    "import os\ndef solve(): return os.fork()",
    "def solve(): return open('/tmp/grove-was-here', 'w')",
    "import ctypes\ndef solve():\n    if ctypes.CDLL(None).socket(2, 1, 0) < 0: raise OSError",
    "import os\ndef solve(): os.setuid(0) if os.getuid() else 1 / 0",
]
HONEST = "def solve(): return [1]"


def test_without_namespaces_a_program_still_harms_nobody():
    programs = [HONEST, *REFUSED, "def solve():\n    while True: pass", HONEST]
    command = [sys.executable, "-c", OWNER]
    done = subprocess.run(
        command, input=json.dumps(programs), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    walls, results = json.loads(done.stdout)
    assert "seccomp" in walls
    assert not {"pid", "net", "mount"} & set(walls)
    first, *refused, endless, last = results
    assert first == last == [None, [1]]
    assert [verdict for verdict, _ in refused] == [Verdict.RUNTIME_ERROR] * len(REFUSED)
    assert endless == [Verdict.TIME_LIMIT, None]
