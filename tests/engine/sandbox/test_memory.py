"""Tests that equal programs share one run. CLOCK returns its run's time, which identifies it."""

from dataclasses import fields

from engine.events.vocabulary import Verdict
from engine.problems.problem import CallTest, Problem
from engine.sandbox.cases import TaskTests
from engine.sandbox.host.verdict_cache import CachingVerifier

CLOCK = "import time\ndef solve(x):\n    return time.monotonic_ns()\n"
GOOD = "def solve(x):\n    return sorted(x)\n"
ENDLESS_AFTER_A_WRONG_ANSWER = (
    "import time\ndef solve(x):\n    while len(x) < 2: pass\n    return time.monotonic_ns()\n"
)


def problem(*argument, name="sort"):
    tests = (CallTest((list(argument),), sorted(argument)),)
    return Problem(name, "Sort.", "solve", tests, (CallTest(([1],), [1]),))


A, B, C = problem(2, 1), problem(3, 1), problem(4, 1)


def runs(results):
    """The value that distinguishes one run of CLOCK from another."""
    return [result.public[0].actual for result in results]


def test_equal_programs_of_one_call_are_run_once(sandbox):
    verifier = CachingVerifier(sandbox)
    first, right, second = verifier.verify([(A, CLOCK), (A, GOOD), (A, CLOCK)])
    assert right.verdict is Verdict.PASSED
    assert first == second and first.verdict is Verdict.WRONG_ANSWER


def test_a_later_call_remembers_what_was_run_on_the_same_tests(sandbox):
    verifier = CachingVerifier(sandbox)
    (first,) = verifier.verify([(A, CLOCK)])
    again, renamed, other = verifier.verify(
        [(A, CLOCK), (problem(2, 1, name="another"), CLOCK), (B, CLOCK)]
    )
    assert again == renamed == first
    assert runs([other]) != runs([first])


def test_the_oldest_verdict_is_forgotten_first(sandbox):
    verifier = CachingVerifier(sandbox, most=2)
    a, b = verifier.verify([(A, CLOCK), (B, CLOCK)])
    verifier.verify([(A, CLOCK)])
    verifier.verify([(C, CLOCK)])
    kept, again = verifier.verify([(A, CLOCK), (B, CLOCK)])
    assert kept == a
    assert runs([again]) != runs([b])


def test_a_verdict_near_a_limit_is_not_cached(sandbox):
    verifier = CachingVerifier(sandbox)
    (first,) = verifier.verify([(A, ENDLESS_AFTER_A_WRONG_ANSWER)])
    (second,) = verifier.verify([(A, ENDLESS_AFTER_A_WRONG_ANSWER)])
    assert first.verdict is second.verdict is Verdict.WRONG_ANSWER
    assert runs([first]) != runs([second])


def test_a_verdict_depends_on_every_field_of_a_problem_but_its_text_and_labels():
    labels = {"id", "statement", "reference", "other_references", "difficulty", "tags"}
    assert {field.name for field in fields(Problem)} - labels == {
        field.name for field in fields(TaskTests)
    }
