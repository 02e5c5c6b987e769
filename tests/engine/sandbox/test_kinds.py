"""Tests of every kind of test in a problem: calls, scripts, code, checkers; alone and mixed."""

import pytest

from engine.config.sandbox import SandboxConfig
from engine.events.vocabulary import Verdict
from engine.problems.problem import CallTest, CodeTest, Comparison, Limits, Problem, StdinTest
from engine.sandbox.guest.wire import MAX_WRITTEN
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verify import verify


def problem(tests, entry_point="solve", **fields):
    return Problem("p", "Do.", entry_point, tests[:1], tests[1:] or tests, **fields)


@pytest.fixture
def verdict(sandbox):
    """The verification of one program."""

    def run(tests, program, entry_point="solve", **fields):
        (result,) = verify(sandbox, [(problem(tests, entry_point, **fields), program)])
        return result

    return run


SUMS = (StdinTest("1 2\n", "3\n"), StdinTest("5 6\n", "11"), StdinTest("0 0", "0\n\n"))


@pytest.mark.parametrize(
    "program",
    [
        "print(sum(map(int, input().split())))",
        "import sys\nprint(sum(map(int, sys.stdin.read().split())), file=sys.stdout)",
        "import sys\nfor line in sys.stdin: print(sum(map(int, line.split())), end='  \\r\\n')",
        "import sys\nd = sys.stdin.buffer.read().split()\n"
        "sys.stdout.buffer.write(str(int(d[0]) + int(d[1])).encode())",
        "print(sum(map(int, open(0).read().split())))",
        "import os\nos.write(1, str(sum(map(int, os.read(0, 99).split()))).encode())",
        "import io, os\nline = io.BytesIO(os.read(0, os.fstat(0).st_size)).readline()\n"
        "print(sum(map(int, line.split())))",
        "import mmap\nwith mmap.mmap(0, 0, access=mmap.ACCESS_READ) as given:\n"
        "    print(sum(map(int, given.readline().split())))",
        "def main():\n    print(sum(map(int, input().split())))\n"
        "if __name__ == '__main__':\n    main()",
        "print(sum(map(int, input().split())))\nexit()",
        "import sys\nprint(sum(map(int, input().split())))\nsys.exit(0)",
        "import os\nprint(sum(map(int, input().split())), flush=True)\nos._exit(0)",
        "import atexit, io, sys\nout = io.StringIO()\n"
        "atexit.register(lambda: sys.__stdout__.write(out.getvalue()))\nsys.stdout = out\n"
        "print(sum(map(int, input().split())))",
        "import sys, threading\nthreading.stack_size(2 ** 24)\nsys.setrecursionlimit(10 ** 6)\n"
        "def main(): print(sum(map(int, input().split())))\n"
        "thread = threading.Thread(target=main)\nthread.start()",
        "from dataclasses import dataclass\n@dataclass\nclass Pair:\n    a: int\n    b: int\n"
        "p = Pair(*map(int, input().split()))\nprint(p.a + p.b)",
        "import asyncio\nasync def main(): print(sum(map(int, input().split())))\n"
        "asyncio.run(main())",
        "import sys\ninput = sys.stdin.readline\nprint(sum(map(int, input().split())))\n"
        "sys.stderr.write('done')",
    ],
)
def test_a_script_may_read_and_print_as_scripts_do(verdict, program):
    result = verdict(SUMS, program, "")
    assert result.passed, result


@pytest.mark.parametrize(
    ("program", "expected_verdict", "part"),
    [
        ("print(7)", Verdict.WRONG_ANSWER, ""),
        ("pass", Verdict.WRONG_ANSWER, ""),
        ("print(3", Verdict.SYNTAX_ERROR, "program.py, line 1"),
        ("print(3)\nraise ValueError('no')", Verdict.RUNTIME_ERROR, "ValueError: no\n  program.py"),
        ("print(3)\nexit(2)", Verdict.RUNTIME_ERROR, "SystemExit: 2"),
        ("import os\nos._exit(3)", Verdict.RUNTIME_ERROR, "exit status 3"),
        ("input(), input(), input()", Verdict.RUNTIME_ERROR, "EOFError"),
        ("while True: print('x' * 100)", Verdict.OUTPUT_LIMIT, "limit"),
        ("import os\nfor _ in range(999): os.write(1, b'x' * 100)", Verdict.OUTPUT_LIMIT, "limit"),
        ("while True: pass", Verdict.TIME_LIMIT, "time limit"),
        ("x = bytearray(10 ** 9)", Verdict.MEMORY_LIMIT, "MemoryError"),
        ("import ctypes\nctypes.string_at(0)", Verdict.KILLED, "Segm"),
    ],
)
def test_every_exit_status_of_a_script_has_its_name(verdict, program, expected_verdict, part):
    result = verdict(SUMS, program, "")
    assert result.verdict == expected_verdict, result
    assert part in result.error
    assert result.fraction == 0.0


def test_a_report_shows_what_was_read_and_printed(verdict):
    (report,) = verdict(SUMS, "print(7)", "").public
    assert (report.input, report.expected, report.actual) == ("'1 2\\n'", "'3\\n'", "'7\\n'")


def test_each_stdin_test_has_a_process_of_its_own(verdict):
    program = "import sys\nseen = getattr(sys, 'seen', [])\nsys.seen = seen\nseen.append(1)\n"
    assert verdict(
        SUMS, program + "print(sum(map(int, input().split())) + len(seen) - 1)", ""
    ).passed


def test_printed_numbers_may_differ_within_the_tolerance(verdict):
    tests = (StdinTest("", "0.3333 yes\n2\n"),)
    program = "print(1 / 3, 'yes')\nprint(2.00001)"
    assert verdict(tests, program, "", comparison=Comparison(tolerance=1e-3)).passed
    assert not verdict(tests, program, "", comparison=Comparison(tolerance=1e-6)).passed
    assert not verdict(tests, program, "").passed


def test_a_tolerance_does_not_excuse_a_wrong_whole_number(verdict):
    tests, loose = (StdinTest("", "1000000007 0.5\n"),), Comparison(tolerance=1e-3)
    assert verdict(tests, "print(1000000007, 0.5001)", "", comparison=loose).passed
    assert not verdict(tests, "print(1000000008, 0.5)", "", comparison=loose).passed


def test_large_outputs_are_compared_whole(verdict):
    text = "".join(f"{i}\n" for i in range(20_000))
    tests = (StdinTest("20000", text),)
    assert verdict(tests, "for i in range(int(input())): print(i)", "").passed
    assert not verdict(tests, "for i in range(int(input()) - 1): print(i)", "").passed


def test_another_accepted_answer_is_right(verdict):
    tests = (CallTest((), 1, (2, [3])),)
    right = [verdict(tests, f"def solve(): return {v}").passed for v in ("1", "2", "[3]", "4")]
    assert right == [True, True, True, False]
    assert verdict((StdinTest("", "a", ("b",)),), "print('b')", "").passed


def test_a_method_is_called_on_a_new_object_each_time(verdict):
    program = """
class Solution:
    def __init__(self): self.calls = 0
    def count(self, x: List[int]):
        self.calls += 1
        return self.calls * len(x)
"""
    tests = tuple(CallTest(([0] * n,), n) for n in (1, 2, 3))
    prelude = "from typing import *"
    assert verdict(tests, program, "Solution.count", prelude=prelude).passed
    result = verdict(tests, "class Solution: pass", "Solution.count")
    assert result.verdict == Verdict.RUNTIME_ERROR
    assert "no attribute 'count'" in result.error


def test_the_prelude_precedes_the_program_and_keeps_its_own_line_numbers(verdict):
    prelude = "import math\ndef helper(x):\n    return x + 1\n"
    tests = (CallTest((1,), 2),)
    assert verdict(tests, "def solve(x): return helper(x)", prelude=prelude).passed
    result = verdict(tests, "def solve(x):\n    return 1 / 0", prelude=prelude)
    assert "program.py, line 2, in solve" in result.error
    result = verdict(tests, "def solve(x): return helper('')", prelude=prelude)
    assert "prelude.py, line 3, in helper" in result.error


CODES = (
    CodeTest("assert candidate([2, 1]) == [1, 2]"),
    CodeTest("for n in range(5):\n    assert solve(list(range(n))[::-1]) == list(range(n))"),
    CodeTest("assert abs(sum(candidate([0.1] * 3)) - 0.3) < 1e-9\nassert set(solve([1])) == {1}"),
    CodeTest("def check(f):\n    assert f(x=[1]) == [1]\ncheck(candidate)"),
)


@pytest.mark.parametrize(
    "program",
    [
        "\ufeffdef solve(): return 1\n",
        "def solve():\r\n\tgröße = 1\r\n\treturn größe\r\n",
        "import io, sys\nsys.stdout.reconfigure(encoding='utf-8')\n"
        "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\n"
        "def solve():\n    print('é', flush=True)\n    return 1\n",
        "import sys\nsys.setrecursionlimit(10 ** 6)\n"
        "def deep(n): return 1 if n == 0 else deep(n - 1)\ndef solve(): return deep(10 ** 4)\n",
        "import asyncio\nasync def one(): return 1\n"
        "def solve(): return asyncio.run(asyncio.wait_for(one(), 1))\n",
        "import pickle\nfrom dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int\n"
        "def solve(): return pickle.loads(pickle.dumps(Point(1))).x\n",
        "import mmap\nwhole = mmap.mmap(-1, 99)\nwhole[:2] = b'ab'\n"
        "part = mmap.mmap(-1, 99, access=mmap.ACCESS_READ)\n"
        "def solve(): return int(whole[:3] + part[:1] == b'ab\\0\\0' and len(part) == 99)\n",
        "import ctypes\nlibm = ctypes.CDLL('libm.so.6')\nlibm.cos.restype = ctypes.c_double\n"
        "def solve(): return int(libm.cos(ctypes.c_double(0)))\n",
        "import zlib, bz2, lzma, hashlib, uuid, sqlite3, ssl, xml.etree.ElementTree\n"
        "def solve(): return int(uuid.uuid4().version == 4)\n",
    ],
)
def test_honest_programs_of_all_kinds_pass(verdict, program):
    result = verdict((CallTest((), 1),), program)
    assert result.passed, result


def test_a_program_may_use_as_many_threads_as_a_pool_takes(limits):
    program = "from concurrent.futures import ThreadPoolExecutor\nimport time\ndef solve():\n"
    program += "    with ThreadPoolExecutor(32) as pool:\n"
    program += "        return sum(pool.map(lambda x: time.sleep(0.01) or x, range(64)))\n"
    with Sandbox(SandboxConfig(workers=1, wall_seconds=limits["wall_seconds"])) as sandbox:
        tests = (CallTest((), sum(range(64))),)
        assert verify(sandbox, [(problem(tests), program)])[0].passed


def test_code_that_asserts_judges_from_outside(verdict):
    assert verdict(CODES, "def solve(x): return sorted(x)").passed
    result = verdict(CODES, "def solve(x): return x")
    assert (result.verdict, result.fraction) == (Verdict.WRONG_ANSWER, 0.5)
    (report,) = result.public
    assert report.input == CODES[0].code
    assert (report.expected, report.actual) == ("", "")
    assert "AssertionError" in report.error


@pytest.mark.parametrize(
    ("program", "expected_verdict", "part"),
    [
        ("def solve(x: pass", Verdict.SYNTAX_ERROR, "program.py"),
        ("def other(x): pass", Verdict.RUNTIME_ERROR, "name 'solve' is not defined"),
        ("def solve(x): return 1 / 0", Verdict.RUNTIME_ERROR, "program.py, line 1, in solve"),
        ("def solve(x): return object()", Verdict.RUNTIME_ERROR, "object is not a plain value"),
        ("def solve(x): return None", Verdict.WRONG_ANSWER, "AssertionError"),
        ("def solve(x):\n    while True: pass", Verdict.TIME_LIMIT, "time limit"),
        ("def solve(x): return bytearray(10 ** 9)", Verdict.MEMORY_LIMIT, "MemoryError"),
        ("def solve(x): return 'x' * 10 ** 6", Verdict.OUTPUT_LIMIT, "allowed"),
        ("def solve(x): import os; os._exit(0)", Verdict.RUNTIME_ERROR, "exit status 0"),
        ("def solve(x): import ctypes; ctypes.string_at(0)", Verdict.KILLED, "Segm"),
    ],
)
def test_every_exit_status_under_a_checker_has_its_name(verdict, program, expected_verdict, part):
    result = verdict(CODES, program)
    assert result.verdict == expected_verdict, result
    assert part in result.error
    assert result.fraction == 0.0


def test_exceptions_reach_the_judge_as_built_in_classes(verdict):
    program = """
class Odd(ValueError): pass
def solve(x):
    if x == 0: raise Odd('odd')
    if x == 1: raise KeyError('k')
    if x == 2: b'\\xff'.decode()
    if x == 3: raise StopIteration
    raise type('Fine', (BaseException,), {})
"""

    def expects(name, x, message=""):
        return CodeTest(
            f"try: candidate({x})\nexcept {name} as e: assert {message!r} in str(e)\nelse: assert 0"
        )

    tests = (
        expects("ValueError", 0, "odd"),
        expects("KeyError", 1, "k"),
        expects("ValueError", 2, "invalid start byte"),
        expects("RuntimeError", 3, "StopIteration"),
        expects("BaseException", 4),
        CodeTest("import unittest\ncase = unittest.TestCase()\n"
                 "with case.assertRaises(ValueError): candidate(0)"),
    )  # fmt: skip
    assert verdict(tests, program).fraction == 1.0
    assert verdict(tests, "def solve(x): return x").fraction == 0.0


def test_the_prelude_is_run_for_the_judge_too_and_its_stub_is_not_the_candidate(verdict):
    prelude = "def double(x):\n    return 2 * x\ndef solve(x):\n    return 4\n"
    tests = (CodeTest("assert candidate(double(1)) == solve(2) == 5"),)
    assert verdict(tests, "def solve(x): return double(x) + 1", prelude=prelude).passed
    assert not verdict(tests, "def solve(x): return 4", prelude=prelude).passed


def test_a_method_is_judged_by_its_own_name_too(verdict):
    tests = (CodeTest("assert Solution().inc(1) == 2\nassert candidate(2) == 3"),)
    program = "class Solution:\n    def inc(self, x): return x + 1"
    assert verdict(tests, program, "Solution.inc").passed


def test_a_checker_judges_what_has_many_answers(verdict):
    checker = """
def check(given, expected, actual):
    numbers, total = given
    return sorted(actual) != [0] and actual[0] in numbers and sum(actual) == total == sum(expected)
"""
    tests = (CallTest(([1, 2, 3, 4], 5), [1, 4]), CallTest(([5, 6], 11), [5, 6]))
    comparison = Comparison(checker=checker)
    right = "def solve(x, t): return [next(a for a in x[::-1] if t - a in x), 0][:1] * 0 or "
    right += "[x[-1], t - x[-1]]"
    assert verdict(tests, right, comparison=comparison).passed
    assert not verdict(tests, "def solve(x, t): return [0]", comparison=comparison).passed
    result = verdict(tests, "def solve(x, t): return 5", comparison=comparison)
    assert result.verdict == Verdict.WRONG_ANSWER
    assert "the checker did not accept it: TypeError" in result.error


def test_a_checker_sees_stdin_and_what_was_printed(verdict):
    comparison = Comparison(
        checker="def check(given, expected, actual): return given + actual == expected"
    )
    tests = (StdinTest("a", "ab\n"),)
    assert verdict(tests, "print('b')", "", comparison=comparison).passed
    assert not verdict(tests, "print('c')", "", comparison=comparison).passed


def test_only_true_is_a_checkers_yes(verdict):
    for answer in ("1", "'yes'", "[True]", "None"):
        comparison = Comparison(checker=f"def check(g, e, a): return {answer}")
        assert not verdict(
            (CallTest((), 1),), "def solve(): return 1", comparison=comparison
        ).passed


def test_a_problem_may_mix_kinds_of_tests(verdict):
    tests = (
        CodeTest("assert candidate(1) == 2"),
        CallTest((1,), 2),
        CodeTest("assert candidate(2) == 3"),
        CallTest((5,), 7),
    )
    assert verdict(tests, "def solve(x): return x + 1").fraction == 0.75


def test_loose_types_and_tolerance_are_the_problems_choice(verdict):
    tests = (CallTest((), [1, 0.5]),)
    program = "def solve(): return (1.0, 0.5000001)"
    assert not verdict(tests, program).passed
    assert not verdict(tests, program, comparison=Comparison(loose_types=True)).passed
    assert not verdict(tests, program, comparison=Comparison(tolerance=1e-3)).passed
    assert verdict(tests, program, comparison=Comparison(1e-3, True)).passed


@pytest.mark.large
def test_a_problems_limits_hold_for_each_of_its_tests(verdict):
    """The sandbox's own 0.4 s apply to all tests together."""
    burn = "import time\ndef solve(s):\n    end = time.process_time() + s\n"
    burn += "    while time.process_time() < end: pass\n    return 1\n"
    tests = tuple(CallTest((0.15,), 1) for _ in range(4))
    assert verdict(tests, burn, limits=Limits(seconds=0.3)).passed
    slow = (*tests, CallTest((1.0,), 1), CallTest((0.0,), 1))
    result = verdict(slow, burn, limits=Limits(seconds=0.3))
    assert (result.verdict, result.fraction) == (Verdict.TIME_LIMIT, 5 / 6)
    codes = tuple(CodeTest("assert candidate(0.15) == 1") for _ in range(4))
    assert verdict(codes, burn, limits=Limits(seconds=0.3)).passed
    codes = (*codes, CodeTest("assert candidate(1.0) == 1"))
    assert verdict(codes, burn, limits=Limits(seconds=0.3)).fraction == 0.8
    big = (CallTest((), 1),)
    program = "def solve(): return len(bytearray(100 << 20)) and 1"
    assert verdict(big, program).verdict == Verdict.MEMORY_LIMIT
    assert verdict(big, program, limits=Limits(memory_mb=256)).passed


def test_an_honest_program_may_need_half_of_the_limit_on_each_of_many_tests(verdict):
    burn = "import time\ndef solve(s):\n    end = time.process_time() + 0.05\n"
    burn += "    while time.process_time() < end: pass\n    return s\n"
    calls = tuple(CallTest((i,), i) for i in range(10))
    codes = tuple(CodeTest(f"assert candidate({i}) == {i}") for i in range(10))
    for tests in (calls, codes):
        assert verdict(tests, burn, limits=Limits(seconds=0.12)).passed


def test_results_too_large_for_a_batch_run_in_single_calls(verdict):
    """Each is a megabyte of text; together they exceed what the owner reads at once."""
    right = "x" * 1_000_000
    tests = tuple(CallTest((i,), right) for i in range(MAX_WRITTEN // len(right) + 1))
    program = "def solve(x): return 'x' * 1_000_000"
    assert verdict(tests, program, limits=Limits(seconds=5)).passed


STATEFUL = "seen = []\ndef solve(x):\n    seen.append(x)\n    return len(seen)\n"


def test_a_test_that_failed_in_a_batch_is_repeated_in_a_single_call(verdict):
    """In its own child, every call is the program's first."""
    assert verdict(tuple(CallTest((i,), 1) for i in range(5)), STATEFUL).passed
    assert verdict(
        tuple(CodeTest(f"assert candidate({i}) == 1") for i in range(4)), STATEFUL
    ).passed


TWO_TRIES = """
import sys
def solve(x):
    frame = sys._getframe()
    while frame and "arguments" not in frame.f_locals:
        frame = frame.f_back
    return frame is not None
"""


def test_a_program_cannot_answer_differently_in_a_batch_and_in_a_single_call(verdict):
    """The program answers yes in a batch and no alone; it never runs in a batch here."""
    answers = (True, False, True, True, False)
    tests = tuple(CallTest((i,), answer) for i, answer in enumerate(answers))
    assert verdict(tests, TWO_TRIES).fraction == 0.4  # all answered no


COIN = "import os\nCOIN = os.urandom(1)[0] % 2\ndef solve(x): return x == 0 or COIN == 1\n"


def test_a_random_answer_is_drawn_once_per_question(sandbox):
    """Right on half of 200 yes-or-no questions, not on three quarters: 125 is 3.5 sigma off."""
    pairs = []
    for n in range(200):
        tests = (CallTest((0,), True), CallTest((1,), n % 2 == 0))
        pairs.append((Problem(f"{n}", "Answer.", "solve", tests[:1], tests[1:]), f"{COIN}# {n}"))
    assert 75 <= sum(result.passed for result in verify(sandbox, pairs)) <= 125


COUNTS_ITS_RUNS = """
import os, sys, threading
frame, alone = sys._getframe(), False
while frame:
    alone |= "sizes" in frame.f_locals
    frame = frame.f_back
while not alone and threading.current_thread().native_id % 50:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    if not thread.native_id % 50:
        break
right_after_the_batch = alone and os.getppid() % 50 == 1
def solve(x):
    return not right_after_the_batch
"""


def test_a_program_that_counts_its_runs_gets_no_second_answer_where_it_failed(verdict):
    """It answers yes, then no in the second run, and yes if that was detected."""
    tests = tuple(CallTest((i,), i % 3 != 1) for i in range(9))
    assert verdict(tests, COUNTS_ITS_RUNS).fraction < 0.8


def test_the_same_holds_for_code_tests_and_when_stopping_early(sandbox, verdict):
    tries = "calls = []\ndef solve(x):\n    calls.append(x)\n    return len(calls) > 1\n"
    tests = tuple(CodeTest(f"assert candidate(0) is {a}") for a in (False, True, False, True))
    assert verdict(tests, tries).fraction == 0.5  # all answered no
    (early,) = verify(sandbox, [(problem(tests), tries)], stop_early=True)
    assert early.fraction == 0.25


def test_a_test_missing_from_a_batch_runs_in_a_single_call(verdict):
    tests = tuple(CallTest((i,), i) for i in range(5))
    dies = "import os\ndef solve(x):\n    if x == 2: os._exit(0)\n    return x\n"
    assert verdict(tests, dies).fraction == 0.8
    hangs = "def solve(x):\n    while x == 2: pass\n    return x\n"
    assert verdict(tests, hangs).fraction == 0.8


def test_a_program_that_is_endless_on_some_tests_gets_what_the_others_deserve(verdict):
    tests = tuple(CallTest((i,), i) for i in range(12))
    often = "def solve(x):\n    while x % 2: pass\n    return x\n"
    assert verdict(tests, often, limits=Limits(seconds=0.1)).fraction == 0.5


def test_with_stop_early_nothing_is_run_after_the_first_failure(sandbox):
    tests = (CallTest((1,), 1), CallTest((2,), 0), CallTest((3,), 3), StdinTest("", ""))
    stopped = verify(sandbox, [(problem(tests), "def solve(x): return x")], stop_early=True)[0]
    assert (stopped.verdict, stopped.fraction) == (Verdict.WRONG_ANSWER, 0.25)
    assert not stopped.private_passed


def test_code_tests_need_no_more_than_two_zygotes_per_slot(limits):
    with Sandbox(SandboxConfig(workers=1, **limits)) as sandbox:
        good = "def solve(x): return sorted(x)"
        assert all(v.passed for v in verify(sandbox, [(problem(CODES), good)] * 3))
        assert len(sandbox.zygote_pids()) == 2


WITH_CLASSES = """
class Pair:
    def __init__(self, a, b=0): self.a, self.b = a, b
class Node:
    def __init__(self, data): self.data, self.left, self.right = data, None, None
def solve(x, y=None):
    if type(x) is list: return sum(pair.a * pair.b for pair in x)
    if y is not None: return x is y
    return 0 if x is None else 1 + max(solve(x.left), solve(x.right))
"""


def test_a_test_may_pass_objects_of_the_programs_own_classes(verdict):
    tests = (
        CodeTest("assert solve([Pair(5, 24), Pair(2, b=1)]) == 122"),
        CodeTest(
            "root, other = Node(1), Node(7)\nroot.left = Node(2)\nroot.left.right = Node(3)\n"
            "assert solve(root) == 3"
        ),
        CodeTest(
            "def check(f):\n    node = Node(1)\n    node.left = node\n    assert f(node, node)\n"
            "    assert not f(node, Node(1))\ncheck(candidate)"
        ),
    )
    assert verdict(tests, WITH_CLASSES).passed
    assert verdict(tests, WITH_CLASSES.replace("1 + max", "2 + max")).fraction == 2 / 3
    result = verdict(tests, WITH_CLASSES.replace("class Node", "class Other"))
    assert (result.verdict, result.fraction) == (Verdict.RUNTIME_ERROR, 1 / 3)
    assert "name 'Node' is not defined" in verdict(tests[1:], "def solve(x): pass").error


@pytest.mark.parametrize(
    "code",
    ["assert Node(1)", "assert Node", "assert Node is not None", "assert Node(1) == Node(1)",
     "assert Node(1) is not None and solve([])  == 0", "assert node", "assert Node(1) in [Node(1)]",
     "assert solve(Missing(1)) == 1", "assert solve([Node]) == 1", "assert {Node(1)}"],
)  # fmt: skip
def test_a_class_that_a_judge_does_not_have_passes_no_test_by_itself(verdict, code):
    assert verdict((CodeTest(code),), WITH_CLASSES).fraction == 0.0


def test_a_test_may_pass_classes_of_pythons_own(verdict):
    program = """
import builtins
class Box:
    def __init__(self, kind): self.kind = kind
def solve(values, kind):
    kind = getattr(kind, "kind", kind)
    return [v for v in values if type(v) is not kind] if type(kind) is type else "no class"
"""
    tests = (
        CodeTest("assert solve((4, 'a', 7.5), int) == ['a', 7.5]"),
        CodeTest("assert candidate([1, None], kind=str) == [1, None]"),
        CodeTest("assert solve([[], {}], Box(list)) == [{}]"),
        CodeTest("assert solve([], ValueError) == [] and solve([], 'int') == 'no class'"),
    )
    assert verdict(tests, program).passed
    # An object with the name of such a class that is not that class is still no plain value.
    for made in ("type('int', (), {})", "len", "lambda: 0"):
        result = verdict((CodeTest(f"assert solve([1], {made}) == []"),), program)
        assert (result.fraction, "only plain values" in result.error) == (0.0, True)


def test_an_assertion_sees_what_a_standard_class_is(verdict):
    program = """
from collections import Counter, OrderedDict, defaultdict, namedtuple
Point = namedtuple("Point", "x y")
def solve(kind):
    made = {"counter": Counter("aab"), "point": Point(1, [Point(2, 3)]),
            "ordered": OrderedDict(a=defaultdict(int, b=True))}
    return made[kind]
"""
    tests = (
        CodeTest("assert candidate('counter') == {'a': 2, 'b': 1}"),
        CodeTest("assert candidate('point') == (1, [(2, 3)])"),
        CodeTest("assert candidate('ordered') == {'a': {'b': True}}"),
    )
    assert verdict(tests, program).passed


def test_a_class_of_its_own_earns_nothing_by_its_comparison(verdict):
    program = """
class Yes(list):
    __eq__ = lambda self, other: True
    __hash__ = lambda self: 0
class Endless(list):
    def __iter__(self):
        while True: yield 1
def solve(x): return Yes([3]) if x else Endless([1])
"""
    tests = tuple(CodeTest(f"assert candidate({x}) == [1]") for x in (0, 1))
    result = verdict(tests, program)
    assert result.fraction == 0.0
    assert not verdict(tests[1:], program).passed
