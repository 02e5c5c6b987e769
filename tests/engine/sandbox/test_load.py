"""Test of many programs at once, a tenth of them hostile."""

import psutil
import pytest

from engine.config.sandbox import SandboxConfig
from engine.events.vocabulary import Verdict
from engine.problems.problem import CallTest, Limits, Problem
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verify import verify
from tests.helpers.large import large_but
from tests.helpers.waiting import patience

FEW, MANY, HOSTILE_EVERY = 200, 1000, 10
LIMITS = {"cpu_seconds": 0.2, "memory_mb": 64, "output_bytes": 4096}
WALL_OF_WAITING = 0.6
TESTS = tuple(CallTest(([n, 1],), [1, n]) for n in range(2, 4))
SORT = Problem("sort", "Sort.", "solve", TESTS[:1], TESTS[1:])
GOOD = "# {}\ndef solve(x):\n    return sorted(x)\n"
WAITS = "import time\ndef solve(x): time.sleep(10**6)"
HOSTILE = (
    "def solve(x):\n    while True: pass",
    "import os\ndef solve(x):\n    while True: os.fork()",
    "def solve(x):\n    x = []\n    while True: x.append(bytearray(10 ** 6))",
    "def solve(x):\n    while True: print('x' * 1000)",
    WAITS,
    "import os\ndef solve(x):\n    while True: os.write(3, b'x' * 4096)",
    "import os\nos.kill(-1, 9)",
    "import ctypes\nctypes.string_at(0)",
    "def solve(x): return ['y' * 4000] * 1000",
    "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(9,)).start()",
)
MOST_ENDINGS = 2  # one for each test
OURS_MB = 100


def cpu_seconds(process):
    """CPU seconds of a process and of all children that it has reaped."""
    return sum(process.cpu_times()[:4])


@pytest.mark.slow
@pytest.mark.parametrize("number", large_but([FEW], [FEW, MANY]))
def test_many_programs_a_tenth_hostile_end_with_cpu_and_memory_bounded(number):
    """Only the program that waits for ever has a short wall limit: it ends by nothing else."""
    wall_seconds = 60 * patience()
    of_waiting = Limits(seconds=LIMITS["cpu_seconds"] * WALL_OF_WAITING / wall_seconds)
    waiting = Problem("wait", "Sort.", "solve", TESTS[:1], TESTS[1:], limits=of_waiting)
    programs = [
        HOSTILE[i // HOSTILE_EVERY % len(HOSTILE)] if i % HOSTILE_EVERY == 0 else GOOD.format(i)
        for i in range(number)
    ]
    with Sandbox(SandboxConfig(workers=2, wall_seconds=wall_seconds, **LIMITS)) as sandbox:
        verify(sandbox, [(SORT, GOOD)] * 2)
        before = psutil.Process().memory_info().rss
        results = verify(sandbox, [(waiting if p is WAITS else SORT, p) for p in programs])
        grown = psutil.Process().memory_info().rss - before
        zygotes = [psutil.Process(pid) for pid in sandbox.zygote_pids()]
        family = [p for zygote in zygotes for p in (zygote, *zygote.children(recursive=True))]
        theirs = [p.memory_info().rss for p in family]
        used = sum(map(cpu_seconds, family))
    hostile = number // HOSTILE_EVERY
    assert used < hostile * MOST_ENDINGS * LIMITS["cpu_seconds"] + number * 0.05
    assert grown < OURS_MB << 20
    assert max(theirs) < OURS_MB << 20
    for i, result in enumerate(results):
        assert result.passed == (i % HOSTILE_EVERY != 0), (i, result)
        assert result.verdict != Verdict.SANDBOX_FAILURE
