"""Tests of which part of a model's answer counts as the program."""

import pytest

from engine.problems.extraction import MAX_CHARS, extract_program

ADD = "def add(a, b):\n    return a + b\n"
SUB = "def add(a, b):\n    return a - b\n"


def test_an_answer_without_fences_is_the_program():
    assert extract_program(ADD) == ADD


def test_the_last_block_that_parses_wins():
    answer = f"First:\n```python\n{SUB}```\nBetter:\n```py\n{ADD}```\nOutput:\n```\n3 apples\n```\n"
    assert extract_program(answer) == ADD


def test_fenced_blocks_that_do_not_parse_give_nothing_even_if_prose_parses():
    assert extract_program("x = 1\n```\ndef (\n```\n") == ""


def test_a_fence_left_open_ends_with_the_answer():
    assert extract_program(f"Here:\n```python\n{ADD}") == ADD


def test_an_empty_block_is_no_program():
    assert extract_program(f"```python\n{ADD}```\n```\n\n```") == ADD
    assert extract_program("```\n```") == ""
    assert extract_program("  \n") == ""


def test_backticks_inside_a_longer_fence_belong_to_the_program():
    program = 'TEXT = """\n```\nnot a fence\n```\n"""\n'
    assert extract_program(f"````python\n{program}````\n") == program


def test_prose_is_no_program():
    assert extract_program("I would sort the list first.") == ""


@pytest.mark.parametrize(
    "hostile",
    [
        "x = 1\0",
        "x = '\ud800'",
        "(" * 100_000,
        "-" * 100_000 + "1",
        "[" * 150 + "]" * 150 + "\n" + "lambda:" * 20_000 + "1",
        "x = " + "a." * 90_000 + "a",
        "if 1:\n" * 3000,
        "x = 1\n" * MAX_CHARS,
        "`" * MAX_CHARS,
    ],
    ids=["nul", "surrogate", "parens", "minus", "lambda", "dots", "indent", "huge", "ticks"],
)
def test_hostile_text_is_refused_without_harm(hostile):
    assert extract_program(hostile) == ""
    assert extract_program(f"```python\n{hostile}\n```") == ""
