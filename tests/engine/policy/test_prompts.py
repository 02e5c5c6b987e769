"""Tests of prompts: complete, shortened in the documented order, without private tests."""

from engine.environments.programs.prompts import (
    FEEDBACK_CHARACTERS,
    Feedback,
    refinement_prompts,
    root_prompt,
)
from engine.events.vocabulary import TestReport as Report
from engine.events.vocabulary import Verdict
from engine.problems.generator import make_problem
from engine.sandbox.host.job import TraceFrame

PROBLEM, _ = make_problem(1, 1)
WRONG = Report(Verdict.WRONG_ANSWER, "[1, 2]", "3", "4")
BROKEN = Report(Verdict.RUNTIME_ERROR, "[]", "0", error="IndexError: list index out of range")
PASSED = Report(Verdict.PASSED, "[9]", "9", "9")


def texts(feedback, role=""):
    return [messages[-1]["content"] for messages in refinement_prompts(PROBLEM, feedback, role)]


def test_a_root_prompt_holds_the_statement_and_the_role():
    messages = root_prompt(PROBLEM, "You check edge cases.")
    assert [m["role"] for m in messages] == ["system", "user"]
    assert messages[0]["content"] == "You check edge cases."
    assert PROBLEM.statement in messages[1]["content"]


def test_without_a_role_there_is_no_system_message():
    assert [m["role"] for m in root_prompt(PROBLEM)] == ["user"]


def test_a_refinement_shows_program_count_and_failures():
    full = texts(Feedback("def solve(x):\n    return 4\n", (WRONG, PASSED, BROKEN)))[0]
    assert "passed 1 of 3 public tests" in full
    assert "return 4" in full
    assert "solve([1, 2]) gave 4, expected 3." in full
    assert "IndexError: list index out of range" in full


def test_shorter_prompts_lose_failures_then_the_program_never_the_statement():
    prompts = texts(Feedback("def solve(x):\n    return 4\n", (WRONG, BROKEN)))
    assert [len(p) for p in prompts] == sorted((len(p) for p in prompts), reverse=True)
    assert all(PROBLEM.statement in p for p in prompts)
    assert "return 4" in prompts[-2]
    assert "return 4" not in prompts[-1]


def test_long_values_are_cut():
    report = Report(Verdict.WRONG_ANSWER, "[1]", "x" * 5000, "y" * 5000)
    assert len(texts(Feedback("pass", (report,)))[0]) < 1000 + 2 * FEEDBACK_CHARACTERS


def test_private_tests_are_in_no_prompt():
    for index in range(60):
        problem, _ = make_problem(77, index)
        feedback = Feedback(problem.reference, (WRONG,))
        shown = "".join(m["content"] for p in refinement_prompts(problem, feedback) for m in p)
        public = {repr(t.arguments[0]) for t in problem.public_tests}
        for test in problem.private_tests:
            hidden = repr(test.arguments[0])
            if len(hidden) > 6 and hidden not in public:
                assert hidden not in shown


def test_a_traceback_is_shown_with_the_code_of_its_last_frames():
    program = "def first(x):\n    return x[0]\n\ndef solve(x):\n    return first(x)\n"
    located = Report(
        Verdict.RUNTIME_ERROR, "[]", "0",
        error="IndexError: list index out of range\n  program.py, line 2, in first",
    )  # fmt: skip
    frames = (TraceFrame(5, "solve"), TraceFrame(2, "first"))
    traced = texts(Feedback(program, (PASSED, located), ((), frames)))
    assert (
        "solve([]) ended with IndexError: list index out of range, expected 0.\n"
        "  line 5, in solve\n    return first(x)\n"
        "  line 2, in first\n    return x[0]\n"
        "Answer with one" in traced[0]
    )
    plain = texts(Feedback(program, (PASSED, located)))
    assert "line 2, in first, expected 0." in plain[0] and "  line 5" not in plain[0]
    assert plain[-2:] == traced[-2:], "without failing tests there is nothing to trace"
    odd = texts(Feedback("x", (located,), ((TraceFrame(9, "gone"),),)))[0]
    assert "  line 9, in gone\nAnswer" in odd


def test_without_error_feedback_the_program_is_shown_and_its_tests_are_not():
    prompts = texts(Feedback("def solve(x):\n    return 4\n", None))
    assert "return 4" in prompts[0] and "passed" not in prompts[0]
    assert prompts[-1] == root_prompt(PROBLEM)[-1]["content"]


def test_a_repair_without_the_statement_shows_the_program_and_its_results():
    program = "def solve(x):\n    return 4\n"
    feedback = Feedback(program, (WRONG, PASSED))
    whole, bare = (
        [prompt[-1]["content"] for prompt in refinement_prompts(PROBLEM, feedback, "", stated)]
        for stated in (True, False)
    )
    assert bare[:-1] == [text.removeprefix(f"{PROBLEM.statement}\n") for text in whole[:-1]]
    assert bare[0].startswith("This program passed 1 of 2 public tests:\ndef solve(x):")
    assert "solve([1, 2]) gave 4, expected 3." in bare[0]
    assert bare[-1] == whole[-1], "a prompt that is too long begins anew, with the statement"
    nothing = list(refinement_prompts(PROBLEM, Feedback("\n", (WRONG,)), "", False))
    assert nothing == [root_prompt(PROBLEM)]
