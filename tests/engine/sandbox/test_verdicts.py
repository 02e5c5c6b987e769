"""Tests that every way in which an honest program can end has its verdict."""

import math
import os

import pytest

from engine.config.sandbox import SandboxConfig
from engine.events.vocabulary import Verdict
from engine.problems.problem import CallTest, Problem
from engine.sandbox.host.errors import SandboxUnavailable
from engine.sandbox.host.job import Job
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.self_check import SelfCheck, self_check
from engine.sandbox.host.stream import _trace
from engine.sandbox.host.verify import verify

pytestmark = pytest.mark.service


def problem(*private):
    public = (CallTest(([3, 1],), [1, 3]), CallTest(([],), []))
    return Problem(
        "sort", "Sort.", "solve", public, private or (CallTest(([2, 1, 1],), [1, 1, 2]),)
    )


GOOD = "def solve(x):\n    return sorted(x)\n"


def test_a_right_program_passes_every_test(sandbox):
    (result,) = verify(sandbox, [(problem(), GOOD)])
    assert result.passed
    assert (result.verdict, result.fraction, result.error) == (Verdict.PASSED, 1.0, "")
    assert (result.public_passed, result.private_passed) == (2, True)
    first = result.public[0]
    assert (first.verdict, first.input) == (Verdict.PASSED, "[3, 1]")
    assert (first.expected, first.actual) == ("[1, 3]", "[1, 3]")
    assert result.seconds > 0


def test_a_wrong_program_shows_what_it_returned(sandbox):
    (result,) = verify(sandbox, [(problem(), "def solve(x):\n    return x\n")])
    assert not result.passed
    assert result.verdict == Verdict.WRONG_ANSWER
    assert result.fraction == pytest.approx(1 / 3)
    assert [report.verdict for report in result.public] == [Verdict.WRONG_ANSWER, Verdict.PASSED]
    assert (result.public[0].actual, result.public_passed) == ("[3, 1]", 1)
    assert not result.private_passed


DEEP = "def pick(x):\n    return x[9]\n\ndef inner(x):\n    return pick(x)\n\n"


@pytest.mark.parametrize(
    ("program", "frames"),
    [
        (f"{DEEP}def solve(x):\n    return inner(x)\n", [(5, "inner"), (2, "pick")]),
        ("solve = lambda x: (lambda: 1 // 0)()\n", [(1, "<lambda>"), (1, "<lambda>")]),
        ("x = 1 // 0\ndef solve(x):\n    return x\n", [(1, "<module>")]),
        ("def solve(x):\n    raise ValueError('a\\x1f1 solve')\n", [(2, "solve")]),
        ("def solve(x):\n    return x\n", []),
        ("def solve(x:\n", []),
    ],
)  # fmt: skip
def test_the_last_frames_of_an_exception_are_those_of_the_program(sandbox, program, frames):
    (result,) = verify(sandbox, [(problem(), program)])
    assert [tuple(frame) for frame in result.traces[0]] == frames
    assert len(result.traces) == 2, "of public tests alone"
    assert "\x1f" not in result.public[0].error and len(result.public[0].error) <= 200


def test_a_program_cannot_forge_many_or_malformed_frames(sandbox):
    name = "a" * 300
    program = f"def {name}(x):\n    raise ValueError('b' * 300)\nsolve = {name}\n"
    (result,) = verify(sandbox, [(problem(), program)])
    assert result.traces[0] == ((2, "a" * 60),)
    assert _trace("1 a\n2 b\n3 c") == _trace("one a") == _trace("1 ") == _trace("") == ()


def test_failing_only_in_private_is_not_passing(sandbox):
    (result,) = verify(sandbox, [(problem(), "def solve(x):\n    return sorted(set(x))\n")])
    assert (result.public_passed, result.private_passed, result.passed) == (2, False, False)
    assert result.verdict == Verdict.WRONG_ANSWER


def test_an_empty_program_is_not_run(sandbox):
    (result,) = verify(sandbox, [(problem(), " \n")])
    assert (result.verdict, result.fraction, result.seconds) == (Verdict.NO_PROGRAM, 0.0, 0.0)
    assert [report.verdict for report in result.public] == [Verdict.NO_PROGRAM] * 2


def test_results_come_in_the_order_of_the_programs(sandbox):
    programs = [GOOD, "", "def solve(x): return 1", GOOD, "def solve(x: return"]
    results = verify(sandbox, [(problem(), program) for program in programs])
    assert [result.verdict for result in results] == [
        Verdict.PASSED,
        Verdict.NO_PROGRAM,
        Verdict.WRONG_ANSWER,
        Verdict.PASSED,
        Verdict.SYNTAX_ERROR,
    ]


def test_true_is_not_one(sandbox):
    one = Problem("one", "1", "solve", (CallTest((), 1),), (CallTest((), 1),))
    results = verify(
        sandbox, [(one, f"def solve():\n    return {v}\n") for v in ("1", "True", "1.0")]
    )
    assert [result.passed for result in results] == [True, False, False]


def test_special_numbers_cross_and_compare(sandbox):
    big = 3**20000 % 10**4000
    tests = (
        CallTest((math.nan,), math.nan),
        CallTest((big,), big),
        CallTest((-math.inf,), -math.inf),
    )
    echo = Problem("echo", "Echo.", "solve", tests, tests)
    (result,) = verify(sandbox, [(echo, "def solve(x):\n    return x\n")])
    assert result.passed


@pytest.mark.parametrize(
    ("program", "verdict", "part"),
    [
        ("def solve(:", Verdict.SYNTAX_ERROR, "program.py, line 1"),
        ("def solve():\n    return 1\0", Verdict.SYNTAX_ERROR, "null"),
        ("x = " + "(" * 5000, Verdict.SYNTAX_ERROR, "too many nested"),
        ("def solve():\n    return {}['k']", Verdict.RUNTIME_ERROR,
         "KeyError: 'k'\n  program.py, line 2, in solve"),
        ("def other(): pass", Verdict.RUNTIME_ERROR, "name 'solve' is not defined"),
        ("solve = 3", Verdict.RUNTIME_ERROR, "not callable"),
        ("1/0", Verdict.RUNTIME_ERROR, "ZeroDivisionError: division by zero\n  program.py, line 1"),
        ("def solve():\n    return solve()", Verdict.RUNTIME_ERROR, "RecursionError"),
        ("def solve(x): pass", Verdict.RUNTIME_ERROR, "missing 1 required"),
        ("import sys\ndef solve(): sys.exit(0)", Verdict.RUNTIME_ERROR, "SystemExit: 0"),
        ("import sys\nsys.exit()", Verdict.RUNTIME_ERROR, "SystemExit"),
        ("import os\ndef solve(): os._exit(0)", Verdict.RUNTIME_ERROR, "exit status 0"),
        ("import os\nos._exit(7)", Verdict.RUNTIME_ERROR, "exit status 7"),
        ("def solve(): raise KeyboardInterrupt", Verdict.RUNTIME_ERROR, "KeyboardInterrupt"),
        ("def solve(): return input()", Verdict.RUNTIME_ERROR, "EOFError"),
        ("def solve(): return (i for i in 'a')", Verdict.RUNTIME_ERROR, "generator is not a plain"),
        ("import no_such_module", Verdict.RUNTIME_ERROR, "ModuleNotFoundError"),
        ("def solve():\n    while True: pass", Verdict.TIME_LIMIT, "time limit"),
        ("while True: pass", Verdict.TIME_LIMIT, "time limit"),
        ("def solve(): return bytearray(10**9)", Verdict.MEMORY_LIMIT, "MemoryError"),
        ("def solve():\n    x = []\n    while True: x.append(' ' * 10**6 + str(len(x)))",
         Verdict.MEMORY_LIMIT, "Memory"),
        ("def solve(): return 'a' * 5000", Verdict.OUTPUT_LIMIT, "more than is allowed"),
        ("def solve():\n    while True: print('x' * 1000)", Verdict.OUTPUT_LIMIT, "more than"),
        ("def solve(): import os; os.abort()", Verdict.KILLED, "killed"),
        ("def solve(): import ctypes; ctypes.string_at(0)", Verdict.KILLED, "killed: Segm"),
    ],
)  # fmt: skip
def test_every_exit_status_has_its_name(outcomes, honest, program, verdict, part):
    (outcome,) = outcomes(program)
    assert outcome.verdict == verdict, outcome
    assert part in outcome.error
    assert len(outcome.error) <= 200
    honest()


def test_a_program_that_waits_for_ever_is_ended_by_the_wall_limit(outcomes, honest):
    program = "import time\ndef solve(): time.sleep(10**6)"
    (outcome,) = outcomes(program, wall_seconds=0.5)
    assert (outcome.verdict, outcome.error) == (Verdict.TIME_LIMIT, "time limit exceeded")
    honest()


def test_the_calls_after_a_failed_one_are_still_made(outcomes):
    program = "def solve(x):\n    return 10 // x\n"
    results = outcomes(program, (0,), (5,), ("a",), (2,))
    assert [r.value for r in results] == [None, 2, None, 5]
    assert [r.verdict for r in results] == [Verdict.RUNTIME_ERROR, None] * 2


def test_calls_before_a_time_out_keep_their_values(outcomes):
    program = "def solve(x):\n    while x: pass\n    return x\n"
    assert [o.verdict for o in outcomes(program, (0,), (1,), (0,))] == [
        None,
        Verdict.TIME_LIMIT,
        Verdict.TIME_LIMIT,
    ]


def test_printing_is_allowed_and_changes_nothing(outcomes):
    program = "import sys\ndef solve(x):\n    print('hi', x, flush=True)\n"
    program += "    sys.stderr.write('e')\n    return x\n"
    assert [o.value for o in outcomes(program, (1,), (2,))] == [1, 2]


def test_arguments_of_one_call_are_not_those_of_another(sandbox, outcomes):
    shared = [1]
    program = "def solve(x, y):\n    x.append(5)\n    return y\n"
    assert [o.value for o in outcomes(program, (shared, shared), (shared, shared))] == [[1], [1]]
    assert shared == [1]


def test_state_of_one_program_does_not_reach_the_next(outcomes):
    assert outcomes("import math\nmath.pi = 3\ndef solve(): return math.pi")[0].value == 3
    (outcome,) = outcomes("import builtins\nbuiltins.len = None\ndef solve(): return 1")
    assert outcome.verdict == Verdict.RUNTIME_ERROR
    second = "import math\ndef solve(): return [math.pi, len('ab')]\n"
    assert outcomes(second)[0].value == [math.pi, 2]


def test_common_ways_to_write_a_program_work(outcomes):
    program = """
from __future__ import annotations
import collections, dataclasses, functools, random, re, statistics, typing
import colorsys, textwrap

@dataclasses.dataclass
class Point:
    x: int

class Solution:
    @functools.cache
    def run(self, n: int) -> typing.List[int]:
        return [Point(i).x for i in range(n)]

if __name__ == "__main__":
    raise RuntimeError("not run as a script")

def solve(n):
    counts = dict(collections.Counter("aab"))
    return Solution().run(n), counts, random.Random(1).randint(0, 9) < 10, re.sub("a", "b", "a")
"""
    (outcome,) = outcomes(program, (2,))
    assert (outcome.error, outcome.value) == ("", ([0, 1], {"a": 2, "b": 1}, True, "b"))


def test_the_same_program_gives_the_same_answer_in_every_process(limits):
    program = "import random\ndef solve(): return list({'a', 'b', 'c', 'd'}), random.random()\n"
    values = []
    for _ in range(2):
        with Sandbox(SandboxConfig(workers=1, **limits)) as sandbox:
            values.append(sandbox.run([Job(program, "solve", ((),))])[0].outcomes[0].value)
    assert values[0] is not None
    assert values[0] == values[1]


def test_programs_import_their_library_under_a_strict_umask(limits):
    before = os.umask(0o077)
    try:
        with Sandbox(SandboxConfig(workers=1, **limits)) as sandbox:
            self_check(sandbox)
    finally:
        os.umask(before)


def test_an_argument_that_is_not_plain_is_the_callers_error(sandbox, honest):
    with pytest.raises(ValueError):
        sandbox.run([Job(GOOD, "solve", ((object(),),))])
    honest()


def test_the_self_check_passes_here(sandbox):
    self_check(sandbox)


def test_the_self_check_passes_with_owner_only_files(limits):
    """As in the site's processes: other accounts read the files in the sandbox's root."""
    before = os.umask(0o077)
    try:
        with Sandbox(SandboxConfig(workers=1, wall_seconds=limits["wall_seconds"])) as sandbox:
            self_check(sandbox)
    finally:
        os.umask(before)


def test_the_self_check_is_repeated_when_it_is_due(limits):
    with Sandbox(SandboxConfig(workers=1, **limits)) as sandbox:
        often, seldom = SelfCheck(sandbox, every_seconds=0), SelfCheck(sandbox)
        often.when_due()
        seldom.when_due()
        sandbox.config = SandboxConfig(workers=1, **{**limits, "wall_seconds": 1e-9})
        seldom.when_due()
        with pytest.raises(SandboxUnavailable):
            often.when_due()


def test_the_self_check_names_what_is_wrong(limits):
    with (
        Sandbox(SandboxConfig(workers=1, **{**limits, "wall_seconds": 1e-9})) as sandbox,
        pytest.raises(SandboxUnavailable, match=r"instead of passed.*wall_seconds"),
    ):
        self_check(sandbox)
