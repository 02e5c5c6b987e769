"""Tests of the analysis that proves that no call of a program leaves state behind."""

import pytest

from engine.events.vocabulary import Verdict
from engine.problems.problem import CallTest, CodeTest, Problem
from engine.sandbox.host.job import Job
from engine.sandbox.host.stateless import is_stateless, is_stateless_test
from engine.sandbox.host.verify import verify

PLAIN = {
    "one function": "def solve(x):\n    x = str(x)\n    return ''.join(c * 2 for c in x)\n",
    "methods of values": "def solve(x):\n    x.sort()\n    x[0] = -1\n    return x.pop()\n",
    "a name that is nowhere": "def solve(x):\n    x = missing(x)\n    return other",
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
    "a class as LeetCode asks for it": """
from __future__ import annotations
import collections, os, re, sys
import itertools as it
from typing import List

class Node(object):
    def __init__(self, value):
        self.value, self.next = value, None

class Solution:
    LIMIT = 10 ** 9 + 7

    def push(self, value):
        node = Node(value)
        node_value = node.value
        self.memo[node_value] = self.memo.get(node_value, 0) + 1
        return node_value % self.LIMIT

    def run(self, row: List[int]) -> int:
        self.memo = {}
        self._seen = collections.Counter(row)
        words = re.findall("[a-z]+", "a bc")
        return sum(map(self.push, it.chain(row, [len(words)]))) + Solution().other(row)

    def other(self, row):
        return len(row)

if __name__ == "__main__":
    print(Solution().run(list(map(int, sys.stdin.read().split()))))
""",
}
PLAIN["formats of arguments"] = """
def solve(x):
    row = ["{} {0!r:>{1}} {a_1:,.2f}".format(x, 3, a_1=2) for _ in x]
    return "\\n".join(row) + f"{x:.3f}" + format(x, ".2f") + "%5.1f" % x
"""
PLAIN["types in annotations"] = """
import typing
from typing import Callable, Dict, List, Optional, Tuple as Pair, Union

def solve(row: List[List[int]], f: Callable[[int, str], bool] = None) -> "Optional[int]":
    best: typing.Dict[str, Pair[int, ...]] = {}
    def inner(x: Union[int, None], y: list[int] | None = None) -> Dict[str, Missing]:
        return None if x is None else x
    return inner(best.get(row))
"""
PLAIN["a module that is nowhere"] = "def solve(x): return maths.sqrt(x) + Missing().count"
PLAIN["what there is one of"] = "def solve(x): return x is None or x is not True or ... is x"
WITH_STATE = {
    "a generic type as a value": "from typing import List\ndef solve(x): return str(List[x])",
    "a generic type of a module": "import typing\ndef solve(x): return str(typing.List[x])",
    "a generic type that is called": "from typing import Dict\ndef solve(x): return Dict()",
    "a generic type under a local's name": "from typing import List\n"
    "def solve(x): return str(List[x])\ndef other(List): pass",
    "a generic type of a local": "from typing import List\n"
    "def solve(x):\n    def f(y: List[x]): pass",
    "a call in an annotation": "def solve(x):\n    def f(y: print(x)): pass",
    "a condition in an annotation": "from typing import List\n"
    "def solve(x):\n    def f(y: List[0] if str(List[0]) else 1): pass",
    "all of typing": "from typing import get_type_hints\ndef solve(x): return get_type_hints(x)",
    "whether it is the same pattern": "import re\n"
    "def solve(x): return re.compile(x) is re.compile(x)",
    "whether it is the same number": "def solve(x): return x is 1",
    "an attribute of nothing known": "def solve(x): return x.unheard_of",
    "a parameter of a type": "def solve[T](x: T): return T",
    "a match": "def solve(x):\n    match x:\n        case str(y): return y",
    "a format of attributes": "def solve(x): return '{0.__code__}'.format(solve)",
    "a format of items": "def solve(x): return '{0[0]}'.format(x)",
    "a format in a format": "def solve(x): return '{:{0.real}}'.format(x)",
    "a format that is none": "def solve(x): return '{'.format(x)",
    "a format that is made": "def solve(x): return x.format(solve)",
    "a format of a mapping": "def solve(x): return '{a}'.format_map(x)",
    "a format as a function": "def solve(x): return list(map(str.format, x))",
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
    "a name of every module": "def solve(x): return __builtins__",
    "a built-in that only the sandbox adds": "def solve(x): return quit",
    "names of the module": "def solve(x): globals()['seen'] = x",
    "a module behind a module": "import collections\n"
    "def solve(x): collections.abc.sys.modules.clear()",
    "the clock": "import time\ndef solve(x): return time.time()",
    "random numbers": "import random\ndef solve(x): return random.random()",
    "a cache": "from functools import lru_cache\n@lru_cache\ndef solve(x): return x",
    "a class": "class A: seen = []\ndef solve(x): A.seen.append(x)",
    "an attribute of a class": "class A:\n    def f(self, x): A.seen = x",
    "a list of a class": "class A:\n    seen = []\n    def f(self, x): self.seen.append(x)",
    "an object of another than self": "class A:\n    def f(self, x): x.seen = self",
    "a class as self": "class A:\n    def f(self, x): self.seen = x\ndef solve(x): A.f(A, x)",
    "a class that is passed on": "class A:\n    def f(self, x): self.x = x\n"
    "def solve(x): return map(A().f, [A])",
    "a function as self": "class A:\n    def f(self, x): self.x = x\n"
    "def store(self, x): self.x = x\ndef solve(x): store(solve, x)",
    "self under another value": "class A:\n    def f(self, x):\n        self = solve\n"
    "        self.x = x\ndef solve(x): A().f(x)",
    "self in a lambda": "class A:\n    def f(self, x): return (lambda self: self.x)(solve)\n"
    "def solve(x): A().f(x)",
    "a parameter before self": "class A:\n    def f(a, /, self, x): self.x = x\n"
    "def solve(x): A().f(solve, x)",
    "a parameter instead of self": "class A:\n    def f(a, self): self.x = 1\n"
    "def solve(x): A().f(solve)",
    "no parameter before all others": "class A:\n    def f(*a): a[0].x = 1",
    "a list in an annotation": "def other(x: (seen := [])): pass\ndef solve(x): seen.append(x)",
    "a list in an annotation of a class": "class A:\n    def f(self, x: (seen := [])): pass\n"
    "    def solve(self, x): self.seen.append(x)",
    "the class of self": "class A:\n    def f(self, x): self.__class__.x = x",
    "a method of the language": "class A:\n    def __del__(self): print(1)\ndef solve(x): A()",
    "a class with a base": "class A(dict):\n    def f(self, x): self.x = x",
    "a class with a decorator": "class A:\n    @classmethod\n    def f(self, x): self.x = x",
    "a class in a call": "def solve(x):\n    class A: seen = []\n    return A",
    "a module as a value": "import math\ndef solve(x): return vars(math)",
    "a module twice": "import math\nimport sys as math\ndef solve(x): math.modules.clear()",
    "a module of which nothing is known": "import sys\ndef solve(x): sys.setrecursionlimit(x)",
    "a name of such a module": "from sys import setrecursionlimit as s\ndef solve(x): s(x)",
    "a part of a module": "import os.path\ndef solve(x): os.environ.clear()",
    "an attribute of a module": "import math\ndef solve(x): math.pi = x",
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
def test_programs_that_may_keep_state_are_not_stateless(program):
    assert not is_stateless("", program)


def test_the_prelude_runs_in_the_same_module():
    program = "def solve(x): return cache.append(x)\ndef other():\n    cache = 1\n"
    assert is_stateless("", program)
    assert not is_stateless("cache = []", program)
    assert not is_stateless("from typing import *", PLAIN["one function"])


@pytest.mark.parametrize(
    ("code", "certain"),
    [
        ("assert candidate([2, 1]) == [1, 2]", True),
        ("import math\nassert math.isclose(solve(1), 2.0, rel_tol=0.001)", True),
        ("METADATA = {}\ndef check(f):\n    for n in range(9): assert f(n) == n\ncheck(candidate)",
         True),
        ("import random\nrandom.seed(1)\nassert candidate(random.random())", False),
        ("import sys\nsys.setrecursionlimit(99)\nassert candidate(1)", False),
        ("global seen\nseen = candidate(1)", False),
        ("assert candidate(Node(1)) == 1", False),
        ("import unittest\nunittest.TestCase().assertEqual(candidate(1), 1)", False),
    ],
)  # fmt: skip
def test_the_code_of_a_test_may_leave_something_behind_too(code, certain):
    assert is_stateless_test("", code, {"candidate", "solve"}) is certain


TESTS = tuple(CallTest((n,), n + 1) for n in range(1, 6))
COUNT = Problem("count", "Add one.", "solve", TESTS[:1], TESTS[1:])


class Counting:
    """Counts the runs that verification makes of a program, each with its number of calls."""

    def __init__(self, sandbox):
        self.config, self.caps = sandbox.config, sandbox.caps
        self.sandbox = sandbox
        self.calls = []

    def each(self, task, items):
        def counted(run, item):
            def count(job: Job):
                self.calls.append((job.tests, getattr(job, "fork_per_call", False)))
                return run(job)

            return task(count, item)

        return self.sandbox.each(counted, items)


@pytest.mark.parametrize(
    ("program", "runs"),
    [
        ("def solve(x): return x + 1", [(5, False)]),
        ("def solve(x): return x", [(5, False)]),
        ("def solve(x): return [][x]", [(5, False)]),
        ("seen = []\ndef solve(x): return x", [(5, True)]),
        ("seen = []\ndef solve(x): return x + 1", [(5, True)]),
        ("seen = [][1]\ndef solve(x): return x", [(5, True)]),
        ("def solve(x) return x", [(5, True)]),
        ("def solve(x):\n    while x > 4: pass\n    return x", [(5, False), (1, True)]),
        ("def solve(x): return bytearray(x * 10 ** 9)", [(5, False), (5, True)]),
    ],
)
def test_only_what_is_certain_runs_in_a_batch_and_only_what_that_did_not_answer_again(
    sandbox, program, runs
):
    counting = Counting(sandbox)
    (result,) = verify(counting, [(COUNT, program)])
    assert counting.calls == runs
    assert result.passed == ("x + 1" in program)
    assert result.verdict != Verdict.SANDBOX_FAILURE


@pytest.mark.parametrize(
    ("code", "program", "runs"),
    [
        ("assert candidate({}) == {} + 1", "def solve(x): return x", [4]),
        ("assert candidate({}) == {} + 1", "seen = []\ndef solve(x): return x", [1] * 4),
        ("import re\nre.purge()\nassert candidate({}) == {} + 1", "def solve(x): return x",
         [1] * 4),
        ("assert candidate({}) == {} + 1", "def solve(x) return x", [1]),
        ("assert candidate({}) == {} + 1", "seen = nothing\ndef solve(x): return x", [1]),
    ],
)  # fmt: skip
def test_the_same_holds_for_code_tests(sandbox, code, program, runs):
    tests = tuple(CodeTest(code.format(n, n)) for n in range(4))
    counting = Counting(sandbox)
    (result,) = verify(counting, [(Problem("p", "Do.", "solve", tests[:1], tests[1:]), program)])
    assert result.verdict != Verdict.SANDBOX_FAILURE and result.fraction == 0.0
    assert [calls for calls, _ in counting.calls] == runs
