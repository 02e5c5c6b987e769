"""Tests of the shares of right repairs that are counted in a training's events."""

from benchmarks.claims.figures import OF_REPAIRS
from benchmarks.claims.repairs import repair_figures
from engine.events.vocabulary import Event
from engine.problems.generator.compose import program
from engine.problems.generator.underspecified import make_variants, programs_of

OPEN, STATED = make_variants(3, 7, 4), "generated-1-3-7"
READINGS = [program(steps) for steps in OPEN.readings]
MEANT, OTHER = READINGS[OPEN.meant], READINGS[OPEN.meant - 1]
WRONG = "def solve(x):\n    return 7\n"


def tree(seq, number, step, problem, *attempts):
    """Events of a tree whose nodes are pairs of parent and program; None: not verified."""
    yield Event(seq, 0.0, "tree.open", number, None, {"step": step, "problem": problem})
    for node, (parent, text) in enumerate(attempts, start=1):
        yield Event(seq + 2 * node, 0.0, "node.open", number, node, {"parent": parent})
        score = None if text is None else float(text == MEANT)
        closed = {"score": score, "program": text or ""}
        yield Event(seq + 2 * node + 1, 0.0, "node.close", number, node, closed)


def step_end(seq, step):
    return Event(seq, 0.0, "step.end", None, None, {"step": step})


def log():
    yield from tree(1, 1, 1, OPEN.id, (0, MEANT), (0, MEANT), (0, MEANT))  # of an early step
    yield step_end(50, 1)
    yield step_end(51, 2)
    attempts = (0, OTHER), (1, MEANT), (1, OTHER), (0, WRONG), (4, WRONG), (0, MEANT), (6, MEANT)
    yield from tree(100, 2, 3, OPEN.id, *attempts, (1, None), (1, MEANT))
    yield from tree(200, 3, 3, STATED, (0, MEANT), (0, WRONG), (2, MEANT))
    yield from tree(300, 4, 4, OPEN.id, (0, MEANT))  # of a step that has not ended
    yield step_end(400, 3)


def test_attempts_and_repairs_are_counted_by_the_program_that_is_repaired():
    figures = repair_figures(log())
    assert figures == {
        "training/first/right": 1 / 3,
        "training/first/another-reading": 1 / 3,
        "training/repair-of-another-reading/right": 2 / 3,
        "training/repair-of-wrong/right": 0.0,
    }
    assert set(figures) == {figure.name for figure in OF_REPAIRS}


def test_a_training_without_underspecified_problems_has_no_such_figures():
    assert repair_figures(tree(1, 1, 1, STATED, (0, WRONG), (1, MEANT))) == {}
    assert repair_figures([*tree(1, 1, 1, STATED, (0, WRONG), (1, MEANT)), step_end(9, 1)]) == {}


def test_the_programs_of_a_problem_are_those_of_all_its_readings():
    assert programs_of(OPEN.id) == set(READINGS) and len(READINGS) == 4
    assert programs_of(STATED) == frozenset()
