"""Tests of endless results, objects of a prompt's classes, and tests that no judge can run."""

import pytest

from engine.problems.formats.fields import RowError
from tests.engine.problems.test_right_answers import apps, human, judged, read

PROMPT = "def masts(n):\n    pass\n"
ENDLESS = {
    "taken by islice": (
        "    while True: yield n\n",
        "from itertools import islice\ndef check(candidate):\n"
        "    assert list(islice(candidate(3), 2)) == [3, 3]\n",
    ),
    "of large numbers": (
        "    a, b = 0, 1\n    while True:\n        yield a\n        a, b = b, a + b\n",
        "from itertools import takewhile\ndef check(candidate):\n"
        "    assert list(takewhile(lambda v: v < 9, candidate(0))) == [0, 1, 1, 2, 3, 5, 8]\n",
    ),
    "taken by next": (
        "    from itertools import count\n    return count(n)\n",
        "def check(candidate):\n    g = candidate(3)\n    assert [next(g), next(g)] == [3, 4]\n",
    ),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_the_first_items_of_an_endless_iterator_are_judged(sandbox, name):
    body, test = ENDLESS[name]
    assert judged(sandbox, human(body, test, PROMPT)).passed
    wrong = "def masts(n):\n    while True: yield 7\n"
    assert not judged(sandbox, human(body, test, PROMPT), wrong).passed


NODE = "class Node:\n    def __init__(self, v, *nexts):\n        self.v, self.nexts = v, nexts\n\n"
FROZEN = "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Node:\n    v: int\n\n"
SLOTS = "class Node:\n    __slots__ = ('v',)\n    def __init__(self, v):\n        self.v = v\n\n"
PAIR = "from collections import namedtuple\nNode = namedtuple('Node', 'v')\n\n"
ENUM = "from enum import Enum\nclass Node(Enum):\n    A = 3\n\n"
LIST = "class Node(list):\n    @property\n    def v(self):\n        return self[0]\n\n"
PASSED = {
    "an object": (NODE, "Node(3)"),
    "objects within a list": (NODE, "[Node(3)][0]"),
    "a frozen dataclass": (FROZEN, "Node(3)"),
    "slots": (SLOTS, "Node(3)"),
    "a named tuple": (PAIR, "Node(3)"),
    "a list of its own": (LIST, "Node([3])"),
}


@pytest.mark.parametrize("name", PASSED)
def test_objects_of_a_prompts_classes_are_passed(sandbox, name):
    classes, value = PASSED[name]
    test = f"def check(candidate):\n    assert candidate({value}) == 3\n"
    row = human("    return n.v\n", test, classes + PROMPT)
    assert judged(sandbox, row).passed
    assert not judged(sandbox, row, f"{classes}def masts(n):\n    return 4\n").passed


def test_a_tree_a_cycle_and_a_member_of_a_prompt_are_passed(sandbox):
    total = "    return n.v + sum(map(masts, n.nexts))\n"
    test = "def check(candidate):\n    assert candidate(Node(1, Node(2), Node(3, Node(4)))) == 10\n"
    assert judged(sandbox, human(total, test, NODE + PROMPT)).passed
    cycle = "def check(candidate):\n    n = Node(1)\n    n.nexts = [n]\n    assert candidate(n)\n"
    assert judged(sandbox, human("    return n.nexts[0] is n\n", cycle, NODE + PROMPT)).passed
    member = "def check(candidate):\n    assert candidate(Node.A) == 3\n"
    assert judged(sandbox, human("    return n.value\n", member, ENUM + PROMPT)).passed


@pytest.mark.parametrize(
    ("prelude", "test", "reason"),
    [
        (FROZEN, "assert masts(3) == Node(3)", "objects of the solution's class Node"),
        (NODE, "assert isinstance(masts(3), Node)", "objects of the solution's class Node"),
        (ENUM, "assert masts(3) == Node.A", "compares Node.A, which is no plain value"),
        ("", "assert masts(lambda v: v) == 3", "passes a lambda to masts"),
        ("", "def inc(v): return v + 1\nassert masts(inc) == 3", "passes the function inc"),
        ("", "assert masts(len) == 3", "passes the function len to masts"),
        ("", "assert masts(1)(2) == 3", "calls what masts returns"),
        ("", "add = masts(1)\nassert add(2) == 3", "calls what masts returns"),
        ("", "a = []\nassert masts(a) is None\nassert a == [1]", "to change its argument a"),
        ("", "a = []\nassert masts(a) == [1]\nassert a == [1]", "to change its argument a"),
        ("", "a = []\nassert masts(a) is a", "to return its argument a itself"),
        (
            "",
            "def run(a):\n    masts(a)\n    return a\nassert run([2, 1]) == [1, 2]",
            "to change its argument a",
        ),
        (
            "",
            "import io, contextlib\nout = io.StringIO()\nwith contextlib.redirect_stdout(out):\n"
            "    masts(1)\nassert out.getvalue() == '1'",
            "captures what the program prints or reads .redirect_stdout.",
        ),
        (
            "",
            "import io, sys\nsys.stdout = io.StringIO()\nmasts(1)\nassert sys.stdout.getvalue()",
            "captures what the program prints or reads .stdout.",
        ),
        (
            "",
            "from unittest.mock import patch\nwith patch('builtins.input', return_value='a'):\n"
            "    assert masts(1) == 'a'",
            "replaces what the program calls .patch.",
        ),
    ],
)
def test_a_test_that_needs_the_program_in_its_own_process_is_left_out(prelude, test, reason):
    lines = test.replace("masts", "candidate").replace("\n", "\n    ")
    row = human("    return n\n", f"def check(candidate):\n    {lines}\n", f"{prelude}{PROMPT}")
    with pytest.raises(RowError, match=reason.replace("masts", "candidate")):
        read(row)
    if not prelude:
        mbpp = {"task_id": 1, "text": "So.", "code": "def masts(n): return n", "test_list": [test]}
        with pytest.raises(RowError, match=reason):
            read(mbpp)


@pytest.mark.parametrize(
    "test",
    [
        "a = [1]\nassert candidate(a) == [1]\nassert a == [1]",
        "a = [1]\nr = candidate(a)\nassert r == a\nassert r is not a",
        "assert candidate(int) == int('3') or candidate([1]) == [1]",
        "def same(a, b):\n    assert candidate(a) == b\nsame([1], [1])",
        "patch = [1]\nassert candidate(patch) == [1]",
        "import sys\nassert candidate([sys.maxsize]) and sys.stdout",
        "size = len\nassert size(candidate([1])) == 1",
    ],
)
def test_tests_of_values_are_judged(sandbox, test):
    lines = test.replace("\n", "\n    ")
    row = human(
        "    return n[:] if n != int else 3\n", f"def check(candidate):\n    {lines}\n", PROMPT
    )
    assert judged(sandbox, row).passed


def test_a_false_constant_is_an_assertion(sandbox):
    test = (
        "def check(candidate):\n    try: candidate(1)\n    except ValueError: return\n"
        "    assert False, 'no error'\n"
    )
    row = human("    raise ValueError('no')\n", test, PROMPT)
    assert judged(sandbox, row).passed
    assert not judged(sandbox, row, "def masts(n): return n\n").passed


def test_tests_of_two_functions_of_acecode_are_left_out_with_that_reason():
    code = "```python\ndef pack(x):\n    return x\n\ndef unpack(x):\n    return x\n```"
    row = {
        "id": "1", "question": "Two.",
        "test_cases": ["assert pack(1) == 1", "assert unpack(1) == 1"],
        "inferences": [{"completion": code, "pass_rate": 1.0}],
    }  # fmt: skip
    with pytest.raises(RowError, match="calls pack and unpack of the solution"):
        read(row)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("n > 0", 1), ("n - 1", False), ("[n > 0, 2.0]", [1, 2]), ("{'a': n == 1}", {"a": 1})],
)
def test_results_of_json_are_compared_by_pythons_equality(sandbox, value, expected):
    row = apps(f"def f(n):\n    return {value}\n", [[[1], [expected]]], "f")
    assert judged(sandbox, row).passed
    assert not judged(sandbox, row, "def f(n):\n    return 2\n").passed
