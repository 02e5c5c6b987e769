"""Tests of answers that were cut at their limit, of diffs, and of programs that are lambdas."""

import pytest

from engine.events.states import NoProgram
from engine.problems.answers.diffs import is_diff
from engine.problems.extraction import extract
from tests.engine.problems.test_answer_shapes import ADD, FENCED, LOOP, SUB, assert_is, indented
from tests.engine.problems.test_extraction import run

HALF = "def add(a, b):\n    while b:\n        a += 1\n        b -= 1\n"
OPEN = "So:\n\n```python\n"
HALVES = {
    "a loop": HALF,
    "a loop, within a line": HALF.rstrip(),
    "a branch": "def add(a, b):\n    if not b:\n        return a\n",
    "a branch of two": "def add(a, b):\n    if b:\n        return a\n    else:\n        a += b\n",
    "a handler": "def add(a, b):\n    try:\n        return a\n    except TypeError:\n        a\n",
    "a name": "def add(a, b):\n    total = a + b\n    return tot",
    "a keyword": "def add(a, b):\n    retu",
    "a block": "def add(a, b):\n    with x:\n        a += b\n",
}


@pytest.mark.parametrize("name", HALVES)
def test_the_half_of_a_function_is_no_program(name):
    half = HALVES[name]
    for answer in (half, f"{OPEN}{half}", f"It is a sum.\n\n{half}"):
        found = extract(answer, "add", cut=True)
        assert found.reason == NoProgram.CUT_AT_LIMIT
        assert found.program.strip() == half.strip(), "a refinement is shown what there is"
        assert extract(answer, "add").reason is None, "an answer that ended by itself is whole"
    for whole in (f"{FENCED}\nFaster:\n\n", f"{ADD}\nFaster:\n\n", f"{OPEN}{ADD}\n\n",
                  f"{ADD}\nFaster:\n\n```python\n"):  # fmt: skip
        assert_is(extract(whole + half, "add", cut=True), ADD)


def test_the_half_of_a_function_that_the_program_needs():
    answer = "def add(a, b):\n    return f(a)\n\ndef f(a):\n    b = a\n"
    assert extract(answer, "add", cut=True).reason == NoProgram.CUT_AT_LIMIT
    assert_is(extract(f"{FENCED}\n{OPEN}{answer}", "add", cut=True), ADD)


def test_the_half_of_a_method_and_of_a_program_for_stdin():
    half = "class Box:\n    def add(self, a, b):\n        a += b\n"
    assert extract(half, "Box.add", cut=True).reason == NoProgram.CUT_AT_LIMIT
    assert extract(f"{half}        return a\n", "Box.add", cut=True).reason is None
    main = "def main():\n    print(int(input()) * 3)\n"
    assert extract(f"{OPEN}{main}", "", cut=True).reason == NoProgram.CUT_AT_LIMIT
    assert extract(f"{OPEN}{main}main()\nprint(", "", cut=True).reason == NoProgram.CUT_AT_LIMIT
    assert extract(f"{OPEN}{main}main()\n", "", cut=True).reason is None


WHOLE = {
    "a return": ADD,
    "a return, within a line": ADD.rstrip(),
    "two branches": "def add(a, b):\n    if b:\n        return a + b\n    else: return a\n",
    "an error": "def add(a, b):\n    if b > -9:\n        return a + b\n    raise ValueError\n",
    "an endless loop": "def add(a, b):\n    while True:\n        return a + b\n",
    "a lambda": "add = lambda a, b: a + b\n",
    "a line of prose": f"{ADD}```\n\nIt takes one st",
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_function_that_is_whole_stays_so_in_an_answer_that_was_cut(name):
    found = extract(f"{OPEN}{WHOLE[name]}", "add", cut=True)
    assert found.reason is None
    assert run(found.program, "add", 2, 3) == 5


TAILS = {
    "a use": "print(add(1, 2",
    "asserts": "# Tests\nassert add(1, 2) == 3\nassert add(0, ",
    "another function": "def sub(a, b):\n    a -= b\n",
    "the head of another": "def sub(a, ",
    "a decorator": "@cache\ndef sub(a",
    "text": '"""Examples:\n\n>>> add(1, 2)\n3\n',
    "main": 'if __name__ == "__main__":\n    print(add(1, ',
    "a name": "print",
    "a name that nothing has": "prin",
}


@pytest.mark.parametrize("name", TAILS)
def test_what_was_cut_after_the_function_is_left_out(name):
    for answer in (f"{OPEN}{ADD}\n{TAILS[name]}", f"{ADD}\n{TAILS[name]}"):
        found = extract(answer, "add", cut=True)
        assert found.reason is None
        assert run(found.program, "add", 2, 3) == 5
    assert extract(f"{OPEN}import os\n{TAILS[name]}", "add", cut=True).reason == "cut_at_limit"


def test_a_function_that_does_not_parse_is_not_what_was_cut():
    broken = f"{ADD}\ndef sub(a, b)\n    return a\n\ndef mul(a, b):\n    return a * "
    assert extract(f"{OPEN}{broken}", "add", cut=True).reason == NoProgram.CUT_AT_LIMIT


HEAD = "--- a/add.py\n+++ b/add.py\n@@ -1,2 +1,2 @@\n"
CHANGE = " def add(a, b):\n-    return a + b\n+    return a - b\n"
DIFFS = {
    "unified": HEAD + CHANGE,
    "a hunk": f"@@ -1,2 +1,2 @@ class Sum:\n{CHANGE}",
    "no head": CHANGE,
    "no head, and code": " def add(a, b):\n     return a - b\n-print(1)\n+print(2)\n",
    "of git": f"diff --git a/add.py b/add.py\nindex 1a2b3c4..5d6e7f8 100644\n{HEAD}{CHANGE}",
    "a patch": f"*** Begin Patch\n*** Update File: add.py\n@@\n{CHANGE}*** End Patch\n",
    "a new file": "--- /dev/null\n+++ b/add.py\n@@ -0,0 +1,2 @@\n" + indented(SUB, "+"),
}


@pytest.mark.parametrize("name", DIFFS)
@pytest.mark.parametrize("tag", ["diff", "python", "", None])
def test_a_diff_is_not_the_program_next_to_one(name, tag):
    diff = DIFFS[name] if tag is None else f"```{tag}\n{DIFFS[name]}```\n"
    for program in (FENCED, ADD):
        assert_is(extract(f"{program}\nThe change:\n\n{diff}", "add"), ADD)
        assert_is(extract(f"{diff}\nSo it is:\n\n{program}", "add"), ADD)
    assert_is(extract(f"{FENCED}\n{indented(diff, '  ')}", "add"), ADD)


def test_a_diff_after_a_stub_or_alone_is_read_as_the_file_that_it_leaves():
    stub = "```python\ndef add(a, b):\n    pass\n```\n"
    change = " def add(a, b):\n-    pass\n+    return a + b\n"
    assert_is(extract(f"{stub}\n```diff\n{HEAD}{change}```\n", "add"), ADD)
    patch = f"*** Begin Patch\n*** Add File: add.py\n{indented(ADD, '+')}*** End Patch\n"
    assert_is(extract(patch, "add"), ADD)


def test_what_is_no_diff():
    for text in (ADD, indented(ADD, "    "), "-1\n-2\n", "- a\n- b\n", "x = (1\n- 2)\n", "",
                 'x = """\n@@ -1 +1 @@\n-a\n"""\n', "total = (a\n    + b\n    - c)\n"):  # fmt: skip
        assert not is_diff(text)


LAMBDA = "lambda a, b: a + b"
LAMBDAS = {
    "a walrus": f"(add := {LAMBDA})\n",
    "a walrus in a call": f"print((add := {LAMBDA})(1, 2))\n",
    "a walrus in a condition": f"if (add := {LAMBDA}):\n    pass\n",
    "an annotation": f"add: object = {LAMBDA}\n",
    "a tuple": f"add, sub = {LAMBDA}, None\n",
    "a list": f"[add] = [{LAMBDA}]\n",
    "a chain": f"plus = add = {LAMBDA}\n",
    "brackets": f"add = (\n    {LAMBDA}\n)\n",
    "a decorator": f"from functools import cache\nadd = cache({LAMBDA})\n",
    "an alias": "def plus(a, b):\n    return a + b\n\nadd = plus\n",
    "an alias of a lambda": f"plus = {LAMBDA}\nadd = plus\n",
    "a partial function": "from functools import partial\ndef plus(c, a, b): return a + b + c\n"
    "add = partial(plus, 0)\n",
}


@pytest.mark.parametrize("name", LAMBDAS)
def test_a_program_may_bind_its_entry_point_to_a_lambda(name):
    program = LAMBDAS[name]
    block, use = f"```python\n{program}```\n", "```python\nprint(add(1, 2))\n```\n"
    bad = f"```python\n{SUB}```\n"
    for answer in (program, block, f"{bad}\nBetter:\n{block}", f"{block}{use}",
                   f"It is one line.\n\n{program}\nThat is all that it takes.\n"):  # fmt: skip
        found = extract(answer, "add")
        assert found.reason is None
        assert run(found.program, "add", 2, 3) == 5


@pytest.mark.parametrize(
    "use",
    [
        "add = add(1, 2)\nprint(add)\n",
        "add = sorted([1], key=lambda x: x)\n",
        "from functools import reduce\nadd = reduce(lambda a, b: a + b, [1, 2])\n",
        "def show(x):\n    print(x)\nadd = show(add(1, 2))\n",
        "add = max\n",
    ],
)
def test_a_use_that_binds_the_name_again_is_not_the_program(use):
    assert_is(extract(f"{FENCED}\nUse it:\n\n```python\n{use}```\n", "add"), ADD)


@pytest.mark.parametrize(
    "program",
    [
        f"class Box:\n    add = lambda self, a, b: ({LAMBDA})(a, b)\n",
        "class Box:\n    pass\n\nBox.add = lambda self, a, b: a + b\n",
        "class Box:\n    size = 1\n\ndef add(self, a, b):\n    return a + b\n\nBox.add = add\n",
    ],
)
def test_a_method_may_be_bound_too(program):
    bad = "```python\nclass Box:\n    def add(self, a, b):\n        return 0\n```\n"
    found = extract(f"{bad}Better:\n```python\n{program}```\n", "Box.add")
    assert found.reason is None
    assert run(f"{found.program}\nmade = lambda a, b: Box().add(a, b)", "made", 2, 3) == 5


def test_a_session_keeps_a_walrus():
    assert_is(extract(f">>> (add := {LAMBDA})\n<function>\n>>> add(1, 2)\n3\n", "add"),
              f"(add := {LAMBDA})\n")  # fmt: skip


def test_other_shapes_are_as_they_were_in_an_answer_that_was_cut():
    assert_is(extract(f"{FENCED}\n```python\n{LOOP}```\nIt lo", "add", cut=True), LOOP)
