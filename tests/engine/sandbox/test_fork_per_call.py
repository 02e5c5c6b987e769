"""Tests of calls that run one by one, each in a fresh child process."""

import pytest

from engine.events.vocabulary import Verdict
from engine.problems.problem import CallTest, Limits, Problem, StdinTest
from engine.sandbox.guest.wire import MAX_FORKS
from engine.sandbox.host.examine import MAX_WASTED, MIN_SHARE, Examination
from engine.sandbox.host.job import Job
from engine.sandbox.host.verify import verify
from tests.helpers.waiting import patience


@pytest.fixture
def single_calls(sandbox):
    """Outcomes of `solve`, called with each of the numbers below `calls` in its own child."""

    def run(program, calls=3):
        job = Job(program, "solve", tuple((n,) for n in range(calls)), fork_per_call=True)
        (execution,) = sandbox.run([job])
        assert len(execution.outcomes) == len(execution.strains) <= calls
        return execution.outcomes

    return run


LEAVES_NOTES = """
import os, random, sys, threading
seen, math = [], sys.modules["math"]
def solve(x):
    found = [len(seen), hasattr(math, "note"), threading.active_count(), os.getcwd()]
    found += [random.random(), len(os.listdir("/tmp")) if os.access("/tmp", os.R_OK) else 0]
    seen.append(x); math.note = x; os.chdir("/")
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    return found
"""


def test_a_call_finds_nothing_of_those_before_it(single_calls, honest):
    first, *others = [outcome.value for outcome in single_calls(LEAVES_NOTES)]
    assert first[:3] == [0, False, 1]
    assert all(actual == first for actual in others)
    honest()


def test_a_file_of_one_call_does_not_exist_in_the_next(single_calls, sandbox):
    if "tmp" not in sandbox.walls():
        pytest.skip("this host's tier has no writable folder")
    leaves = "import os\ndef solve(x):\n    found = os.listdir('/tmp')\n"
    leaves += "    open('/tmp/note', 'w').close()\n    return found\n"
    for _ in range(2):
        assert [outcome.value for outcome in single_calls(leaves)] == [[]] * 3


WALLS = """
import ctypes, os, resource
libc = ctypes.CDLL(None)
def solve(x):
    limits = [getattr(resource, name) for name in sorted(dir(resource)) if name[:6] == "RLIMIT"]
    found = [resource.getrlimit(limit) for limit in limits if limit != resource.RLIMIT_AS]
    found.append([*os.getresuid(), *os.getresgid(), *os.getgroups()])
    # fork, kill, prctl, pidfd_open, ptrace, setpriority, socket, sched_setaffinity, unshare
    calls = {"x86_64": (57, 62, 157, 434, 101, 141, 41, 203, 272),
             "aarch64": (220, 129, 167, 434, 117, 140, 198, 122, 97)}[os.uname().machine]
    found.append([libc.syscall(call, 17 if call == 220 else 0, 0, 0) for call in calls])
    found.append(libc.prctl(3, 0, 0, 0, 0))
    for descriptor in range(200):
        try: found.append((descriptor, os.fstat(descriptor).st_mode >> 12))
        except OSError: pass
    return found
"""


def test_isolation_equals_that_of_every_other_child(single_calls, outcomes):
    (batch,) = outcomes(WALLS, (0,))
    assert batch.value is not None, batch
    assert [set(actual) for actual in batch.value if type(actual) is list][1] == {-1}
    assert [outcome.value for outcome in single_calls(WALLS)] == [batch.value] * 3


def test_a_call_has_as_much_memory_as_in_a_batch_of_its_own(outcomes, single_calls):
    program = "def solve(x): return len(bytearray(SIZE << 20))"
    for size, fits in ((50, True), (80, False)):
        sized = program.replace("SIZE", str(size))
        results = [*outcomes(sized, (0,)), *single_calls(sized, 2)]
        assert [outcome.verdict for outcome in results] == [None if fits else "memory_limit"] * 3


def test_after_one_time_limit_the_rest_is_left_to_the_next_order(single_calls, honest):
    hangs = "def solve(x):\n    while x == 1: pass\n    return x\n"
    assert [outcome.verdict for outcome in single_calls(hangs)] == [None, Verdict.TIME_LIMIT]
    honest()


def test_each_call_has_its_own_exit_status(single_calls, honest):
    program = """
import ctypes, os, sys
def solve(x):
    if x == 1: ctypes.string_at(0)
    if x == 2: os._exit(3)
    if x == 3: return "y" * 10 ** 6
    if x == 4: os.write(3, b"noise")
    if x == 5: raise ValueError("five")
    return x
"""
    results = [(outcome.verdict, outcome.value) for outcome in single_calls(program, 7)]
    assert results == [
        (None, 0),
        (Verdict.KILLED, None),
        (Verdict.RUNTIME_ERROR, None),
        (Verdict.OUTPUT_LIMIT, None),
        (Verdict.RUNTIME_ERROR, None),
        (Verdict.RUNTIME_ERROR, None),
        (None, 6),
    ]
    honest()


@pytest.mark.parametrize(
    ("program", "verdict"),
    [("def solve(:", Verdict.SYNTAX_ERROR), ("missing\ndef solve(x): pass", Verdict.RUNTIME_ERROR)],
)
def test_a_program_that_cannot_be_loaded_is_not_run_for_every_call(single_calls, program, verdict):
    (first,) = single_calls(program, 3)
    assert first.verdict == verdict and not first.loaded


NUMBERS = """
import os, threading
def solve(x):
    found = []
    for _ in range(5):
        thread = threading.Thread(target=lambda: found.append(threading.get_native_id()))
        thread.start()
        thread.join()
    made = []
    for n in range(5 if os.access("/tmp", os.W_OK) else 0):
        made.append(os.open(f"/tmp/{n}", os.O_CREAT | os.O_WRONLY))
    return found, os.getpid(), os.getppid(), os.getpgrp(), [os.fstat(d).st_ino for d in made]
"""


def test_numbers_of_processes_threads_and_files_are_those_of_every_other_run(
    single_calls, outcomes
):
    first, *others = [outcome.value for _ in range(3) for outcome in single_calls(NUMBERS, 1)]
    assert first is not None and all(actual == first for actual in others)
    assert outcomes(NUMBERS, (0,))[0].value == first


def test_more_tests_than_one_order_holds_all_run_in_single_calls(sandbox):
    stateful = "seen = []\ndef solve(x):\n    seen.append(x)\n    return len(seen)\n"
    tests = tuple(CallTest((n,), 1) for n in range(2 * MAX_FORKS + 3))
    (result,) = verify(sandbox, [(Problem("p", "Do.", "solve", tests[:1], tests[1:]), stateful)])
    assert result.passed


HANGING, QUICK = 12, 6


def examined(sandbox, program, tests, seconds, wall_seconds, has_failed):
    """The results of a program on tests, and the number of time limits that its runs with a failed
    test were allowed: what counts is their limits, not how late a busy machine ended them."""
    name = "solve" if isinstance(tests[0], CallTest) else ""
    problem = Problem("p", "Do.", name, tests[:1], tests[1:], limits=Limits(seconds=seconds))
    of_settings = wall_seconds * sandbox.config.cpu_seconds / seconds
    config = sandbox.config.model_copy(update={"wall_seconds": of_settings})
    allowed = []

    def task(run, program):
        def noted(job):
            execution = run(job)
            processes = zip(execution.outcomes, execution.strains, strict=False)
            failed = sum(has_failed(outcome) for outcome, _ in processes)
            allowed.append(failed * job.bounds.wall_seconds / wall_seconds)
            return execution

        return Examination(noted, config, problem, program).results()

    return sandbox.each(task, [program])[0], sum(allowed)


HANGS = f"import time\ndef solve(x):\n    if x < {HANGING}: {{}}\n    return x\n"
SCRIPT_HANGS = f"import time\nx = int(input())\nif x < {HANGING}: time.sleep(10**6)\nprint(x)\n"
LOOP, SLEEP = "\n        while True: pass", "time.sleep(10**6)"


@pytest.mark.parametrize(
    ("program", "kind", "waits"),
    [
        (HANGS.format(LOOP), CallTest, False),
        pytest.param(HANGS.format(SLEEP), CallTest, True, marks=pytest.mark.large),
        pytest.param(SCRIPT_HANGS, StdinTest, True, marks=pytest.mark.large),
    ],
)
def test_every_test_runs_in_a_single_call_even_if_most_time_out(sandbox, program, kind, waits):
    """The quick tests come last, after the limits are used up: each is run, and counts."""
    numbers = range(HANGING + QUICK)
    tests = tuple(
        CallTest((n,), n) if kind is CallTest else kind(f"{n}\n", f"{n}\n") for n in numbers
    )
    wall_seconds = 0.3 * patience() if waits else 100.0
    results, allowed = examined(
        sandbox, program, tests, 0.1, wall_seconds, lambda outcome: outcome.verdict is not None
    )
    assert {result.verdict for result in results[:HANGING]} == {Verdict.TIME_LIMIT}
    assert any(result.passed for result in results[HANGING:]), results[HANGING:]
    assert "it was shorter" in results[HANGING - 1].outcome.error
    assert MAX_WASTED <= allowed < 2 * MAX_WASTED + 1 + MIN_SHARE * len(tests) < HANGING


def test_a_program_that_stays_just_below_the_limit_is_bounded_too(sandbox):
    """50 tests, each of which takes most of a limit and is wrong."""
    tests = tuple(CallTest((n,), -n) for n in range(1, 51))
    slow = "import time\ndef solve(x):\n    time.sleep(0.12)\n    return x\n"
    results, allowed = examined(sandbox, slow, tests, 0.02, 0.15, lambda outcome: True)
    assert not any(result.passed for result in results)
    least = 0.12 / 0.15  # of a limit, that each run takes
    assert allowed < MAX_WASTED / least + 2 + MAX_WASTED + MIN_SHARE * len(tests)
