"""Of which programs it is certain that no call leaves anything behind."""

import pytest

from engine.events import Verdict
from engine.problems.problem import CallTest, Problem
from engine.sandbox.job import Job
from engine.sandbox.stateless import is_stateless
from engine.sandbox.verify import verify

PLAIN = {
    "one function": "def solve(x):\n    x = str(x)\n    return ''.join(c * 2 for c in x)\n",
    "methods of values": "def solve(x):\n    x.sort()\n    x[0] = -1\n    return x.pop()\n",
    "helpers and constants": """
import math
from collections import Counter, defaultdict
from typing import List

LIMIT = 10 ** 9 + 7
DIRECTIONS = ((0, 1), (1, -1))

def count(row: List[int], start=0):
    seen = defaultdict(list)
    for i, value in enumerate(row, start):
        seen[value].append(i)
    return sorted(Counter(row).items(), key=lambda pair: (-pair[1], pair[0]))

def solve(row):
    def twice(n):
        nonlocal total
        total += n
        return n * 2
    total = 0
    try:
        return [twice(math.gcd(n, LIMIT)) for n, _ in count(row)]
    except (IndexError, ZeroDivisionError) as error:
        return str(error)
""",
}
WITH_STATE = {
    "a list of the module": "seen = []\ndef solve(x): return seen.append(x)",
    "a default argument": "def solve(x, seen=[]): return seen.append(x)",
    "a default of a lambda": "def solve(x):\n    return (lambda y, seen=[]: seen)(x)",
    "an attribute of a function": "def solve(x): solve.seen = x",
    "a loop into an attribute": "def solve(x):\n    for solve.seen in x: pass",
    "a name of the module": "def solve(x):\n    global seen\n    seen = x",
    "an iterator": "import itertools\nsteps = itertools.count()\ndef solve(x): return next(steps)",
    "a frame of a generator": "def solve(x): (i for i in x).gi_frame.f_globals['seen'] = x",
    "a frame of an error": "def solve(x):\n    try: x[0]\n    except IndexError as e:\n"
    "        e.with_traceback(None).tb_frame",
    "a hidden attribute": "def solve(x): solve.__dict__['seen'] = x",
    "a built-in under the name of a local": "def solve(x): setattr(solve, 'seen', x)\n"
    "def other():\n    setattr = 1",
    "names of the module": "def solve(x): globals()['seen'] = x",
    "a module behind a module": "import collections\n"
    "def solve(x): collections.abc.sys.modules.clear()",
    "the clock": "import time\ndef solve(x): return time.time()",
    "random numbers": "import random\ndef solve(x): return random.random()",
    "a cache": "from functools import lru_cache\n@lru_cache\ndef solve(x): return x",
    "a class": "class A: seen = []\ndef solve(x): A.seen.append(x)",
    "a generator that is kept": "def count():\n    yield 1\ndef solve(x): return next(count())",
    "memory that ran out": "def solve(x):\n    try: return [0] * x\n    except Exception: return 0",
    "memory that ran out, hidden": "def solve(x):\n    try: return x\n    finally: return 0",
    "an import in a call": "def solve(x):\n    import math\n    return math.pi",
    "what runs at once": "def solve(x): return x\nsolve([])",
    "something evaluated": "def solve(x): return eval(x)",
    "another module's all": "from os import *\ndef solve(x): return x",
    "a text that is no program": "def solve(x:",
    "a text that is deep": "def solve(x): return " + "(" * 3000,
}


@pytest.mark.parametrize("program", PLAIN.values(), ids=PLAIN.keys())
def test_plain_functions_leave_nothing_behind(program):
    compile(program, "program.py", "exec")
    assert is_stateless("", program)


@pytest.mark.parametrize("program", WITH_STATE.values(), ids=WITH_STATE.keys())
def test_what_might_leave_something_behind_is_known(program):
    assert not is_stateless("", program)


def test_the_prelude_stands_in_the_same_module():
    program = "def solve(x): return cache.append(x)\ndef other():\n    cache = 1\n"
    assert is_stateless("", program)
    assert not is_stateless("cache = []", program)
    assert not is_stateless("from typing import *", PLAIN["one function"])


TESTS = tuple(CallTest((n,), n + 1) for n in range(1, 6))
COUNT = Problem("count", "Add one.", "solve", TESTS[:1], TESTS[1:])


class Counting:
    """How many runs verification makes of a program, each with its number of calls."""

    def __init__(self, sandbox):
        self.config = sandbox.config
        self.sandbox = sandbox
        self.calls = []

    def each(self, task, items):
        def counted(run, item):
            def count(job: Job):
                self.calls.append((len(job.calls), job.alone))
                return run(job)

            return task(count, item)

        return self.sandbox.each(counted, items)


@pytest.mark.parametrize(
    ("program", "runs"),
    [
        ("def solve(x): return x + 1", [(5, False)]),
        ("def solve(x): return x", [(5, False)]),
        ("def solve(x): return [][x]", [(5, False)]),
        ("seen = []\ndef solve(x): return x", [(5, False), (4, True)]),
        ("def solve(x):\n    while x > 4: pass\n    return x", [(5, False), (1, True)]),
        ("def solve(x): return bytearray(x * 10 ** 9)", [(5, False), (5, True)]),
    ],
)
def test_only_what_is_certain_is_not_run_again(sandbox, program, runs):
    counting = Counting(sandbox)
    (result,) = verify(counting, [(COUNT, program)])
    assert counting.calls == runs
    assert result.passed == ("x + 1" in program)
    assert result.verdict != Verdict.SANDBOX_FAILURE
