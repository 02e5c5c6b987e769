"""Tests of the environment of programs: what it asks, reads and shows."""

from dataclasses import replace

import pytest

from engine.environments.opening import open_environment
from engine.environments.types import Move, Written
from engine.events.states import NoProgram
from engine.events.vocabulary import Verdict
from engine.policy.types import Request
from engine.problems.generator import make_problem
from engine.recipes import load_recipe
from engine.sandbox.host.job import TraceFrame
from engine.sandbox.host.verify import Verification

PROBLEM = make_problem(2, 1)[0]
FRAMES = ((TraceFrame(2, "solve"),), (), ())
FAILED = replace(Verification(Verdict.RUNTIME_ERROR, 0.5, (None,) * 3, 1, False), traces=FRAMES)


def programs(**search):
    return open_environment(
        load_recipe("demo", {f"search.{name}": value for name, value in search.items()})
    )


def settled(environment, verdict=FAILED):
    move = Move(PROBLEM, None, "program")
    (one,) = environment.settle([move], lambda pairs: [verdict for _ in pairs])
    return one


@pytest.mark.parametrize("enabled", [True, False])
def test_a_repair_sees_the_traceback_only_if_that_is_enabled(enabled):
    feedback = settled(programs(error_traceback=enabled)).observation
    assert feedback.traces == (FRAMES if enabled else ())


@pytest.mark.parametrize("enabled", [True, False])
def test_without_error_feedback_a_repair_sees_the_program_but_no_test(enabled):
    feedback = settled(programs(error_feedback=enabled)).observation
    assert feedback.program == "program"
    assert feedback.public == ((None,) * 3 if enabled else None)


def test_a_repair_sees_the_statement_unless_it_is_left_out():
    stated, bare = (programs(refinement_statement=has) for has in (True, False))
    turn = Request(PROBLEM, settled(stated, replace(FAILED, public=())).observation)
    assert PROBLEM.statement in next(iter(stated.messages(turn, "")))[0]["content"]
    (text,) = (one["content"] for one in next(iter(bare.messages(turn, ""))))
    assert PROBLEM.statement not in text and "program" in text


def test_every_program_is_scored_at_once_and_may_be_repaired():
    for verdict in Verdict:
        one = settled(programs(), replace(FAILED, verdict=verdict))
        if verdict not in (Verdict.PLAYED, Verdict.TRUNCATED):
            assert not one.goes_on and one.observation is not None
            assert one.outcome.verdict is verdict


def test_the_first_turn_states_the_problem_and_a_later_one_shows_the_feedback():
    environment = programs(error_feedback=False)
    (first,) = environment.messages(Request(PROBLEM), "a role")
    assert first == environment.opening(PROBLEM.statement, "a role")
    assert [one["role"] for one in first] == ["system", "user"]
    longest, shortest = environment.messages(Request(PROBLEM, settled(environment).observation), "")
    assert "program" in longest[0]["content"]
    assert shortest == environment.opening(PROBLEM.statement, "")


def test_a_program_is_read_outside_of_the_thought_that_the_prompt_began():
    program = f"def {PROBLEM.entry_point}(x):\n    return x\n"
    text = f"maybe so\n</think>\n```python\n{program}```"
    environment = programs()
    assert environment.read(PROBLEM, Written(text, "<think>\n")).text == program
    thought = environment.read(PROBLEM, Written(f"```python\n{program}```", "<think>\n"))
    assert (thought.text, thought.fault) == ("", NoProgram.NO_CODE)
    cut = environment.read(PROBLEM, Written("I would", is_cut=True))
    assert cut.fault is NoProgram.CUT_AT_LIMIT
    assert environment.reads_token("<think>") and not environment.reads_token("</s>")
