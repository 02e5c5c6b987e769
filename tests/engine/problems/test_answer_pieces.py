"""Tests of programs in several blocks, in files of their own, within other texts and turns."""

import json
import textwrap

import pytest

from engine.events.states import NoProgram
from engine.problems.extraction import extract
from tests.engine.problems.test_answer_shapes import (
    ADD,
    FENCED,
    LOOP,
    SUB,
    TRIPLE,
    assert_is,
    indented,
    numbered,
)
from tests.engine.problems.test_extraction import run

SUB_BLOCK = f"```python\n{SUB}```\n"
YAML = f"why: adds\ncode: |\n{indented(ADD, '  ')}"

EMBEDDED = {
    "YAML": YAML,
    "YAML in a block": f"So:\n```yaml\n{YAML}```\nDone.\n",
    "a list of YAML": f"- code: |-\n{indented(ADD)}- why: adds\n",
    "TOML": f"```toml\ncode = '''\n{ADD}'''\n```\n",
    "JSON with long strings": f'```json\n{{"code": """\n{ADD}"""}}\n```\n',
    "a dictionary of Python": repr({"code": ADD}),
    "JSON in prose": 'So:\n{"code": "def add(a, b):\\n    return a + b"}\nDone.\n',
    "a printed string": f'print("""\n{ADD}""")\n',
    "an executed string": f'```python\ncode = """\n{ADD}"""\nexec(code)\n```\n',
    "a notebook as text": f"In [3]:\n{ADD}\nIn [4]:\nadd(1, 2)\nOut[4]:\n3\n",
    "a session of a shell": "```console\n$ cat add.py\ndef add(a, b):\n    return a + b\n"
    "$ python add.py\n```\n",
    "a session with a host": f"me@elm:~$ cat add.py\n{ADD}me@elm:~$ python add.py\n3\n",
    "a session of PyPy": ">>>> def add(a, b):\n....     return a + b\n....\n>>>> add(1, 2)\n3\n",
    "a Jira block": f"{{noformat}}\n{ADD}{{noformat}}",
    "teletype": f"<tt>{ADD.rstrip()}</tt>",
    "fences of colons": f":::python\n{ADD}:::\n",
    "Chinese thoughts": f"<思考>\n```python\n{SUB}```\n</思考>\n{ADD}",
    "a margin": f"```\n{indented(ADD, '| ')}```\n",
    "prose that begins as an import": f"Sum:\n\nimport math is not needed.\n\n{ADD}\nThat is it.\n",
    "a block of thoughts": f"```thinking\n{SUB}```\n{ADD}",
}


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_program_is_taken_from_within_another_text(name):
    assert_is(extract(EMBEDDED[name], "add"), ADD)
    answer = f"{EMBEDDED[name]}\n\n```python\n{LOOP}```\n"
    if "thoughts" not in name and "prose" not in name:  # their code is a block's equal
        assert_is(extract(answer, "add"), LOOP)


def test_a_quoted_docstring_is_no_fence():
    program = 'def add(a, b):\n    """Adds.\n    >>> add(1, 2)\n    3\n    """\n    return a + b\n'
    assert_is(extract(indented(program, "> "), "add"), program)


def test_of_a_notebook_the_cells_of_code_are_the_program():
    cell = {"cell_type": "code", "outputs": [{"name": "stdout", "text": ["3"]}]}
    cells = [
        {"cell_type": "markdown", "source": ["# Sum\n"]},
        cell | {"source": ["import os"]},
        cell | {"source": ADD.splitlines(True)},
    ]
    assert_is(extract(json.dumps({"cells": cells}), "add"), f"import os\n{ADD}")


def test_words_before_numbers_of_lines():
    assert_is(extract(numbered("Line %d: %s"), "add"), LOOP)


PLUS = "def plus(a, b):\n    return a + b\n"
CLASS = "class Box:\n    def __init__(self):\n        self.zero = 0\n"
METHOD = "    def add(self, a, b):\n        return a + b + self.zero\n"
PIECES = {
    "a signature and a body": ("add", "def add(a, b):\n", "    return a + b\n"),
    "a body in two": ("add", "def add(a, b):\n    for i in range(b):\n", "        a += 1\n",
                      "    return a\n"),
    "a class and a method": ("Box.add", CLASS, METHOD),
    "a class and a method that is not indented": (
        "Box.add", CLASS, "def add(self, a, b):\n    return a + b + self.zero\n"),
    "after an installation": ("Box.add", "pip install x\n", CLASS, METHOD),
    "a constant below": ("add", "def add(a, b):\n    return a + b + ZERO\n", "ZERO = 0\n"),
    "a file": ("add", PLUS, "from utils import plus\n\ndef add(a, b):\n    return plus(a, b)\n"),
    "a file of the package": (
        "add", PLUS, "from .utils import plus\n\ndef add(a, b):\n    return plus(a, b)\n"),
    "a module": (
        "add", f"ZERO = 0\n{PLUS}", "import utils\nfrom lib import utils as u\n\n"
        "def add(a, b):\n    return utils.plus(a, b) + u.ZERO  # ä: utils.plus\n"),
    "all of a file": (
        "add", f"ZERO = 0\n{PLUS}", "from a.b import *\ndef add(a, b): return plus(a, b) + ZERO\n"),
    "a file that imports another": (
        "add", "def one(a): return a\n", "from one import one\ndef plus(a, b): return one(a) + b\n",
        "from utils import plus\nimport os\ndef add(a, b): return plus(a, b)\n",
        "from main import add\nassert add(1, 2) == 3\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", PIECES)
@pytest.mark.parametrize("lead", ["", "   "])
def test_a_program_in_pieces_is_put_together(name, lead):
    entry_point, *pieces = PIECES[name]
    fences = (indented(f"```python\n{piece}```\n", lead) for piece in pieces)
    found = extract("\nThen:\n\n".join(fences), entry_point)
    assert found.reason is None
    if entry_point == "add":
        assert run(found.program, "add", 2, 3) == 5
    else:
        assert run(f"{found.program}\ntry_box = lambda a, b: Box().add(a, b)", "try_box", 2, 3) == 5


STACK = "class Stack:\n    def __init__(self):\n        self.items = []\n"
PUSH = "def push(self, item):\n    self.items.append(item)\n"
POP = "def pop(self):\n    return self.items.pop()\n"


@pytest.mark.parametrize("lead", ["", "    "])
@pytest.mark.parametrize("entry_point", ["Stack", "Stack.pop"])
def test_methods_in_blocks_of_their_own_belong_to_their_class(lead, entry_point):
    wrong = "def push(self, item):\n    self.items.insert(0, item)\n"
    parts = [STACK, *(textwrap.indent(one, lead) for one in (wrong, PUSH, POP, "print(1)\n"))]
    answer = "".join(f"Then:\n```python\n{one}```\n" for one in parts)
    scope: dict = {}
    exec(extract(answer, entry_point).program, scope)
    stack = scope["Stack"]()
    stack.push(3)
    stack.push(4)
    assert stack.pop() == 4
    whole = STACK + textwrap.indent(PUSH + POP, "    ")
    assert_is(extract(f"```python\n{whole}```\nSo:\n```python\n{wrong}```\n", "Stack"), whole)


def test_imports_of_others_stay():
    gcd = "from math import gcd\n\ndef add(a, b):\n    return gcd(a, b)\n"
    own = "```python\ndef gcd(a, b):\n    return 7\n```\n"
    assert extract(f"{own}```python\n{gcd}```\n", "add").program == gcd
    for line, use in {
        "from numpy import array": "array([a, b]).sum()",
        "from utils import plus as p": "p(a, b)",
        "import utils": "utils.minus(a, b)",
        "import utils as u": "u.plus(a, b) + u",
        "import json": "json.plus(a, b)",
    }.items():
        program = f"{line}\n\ndef add(a, b):\n    return {use}\n"
        found = extract(f"```python\n{PLUS}```\n```python\n{program}```\n", "add")
        assert found.program == program


def test_a_value_below_is_of_a_use_of_the_program():
    main = "def add(a, b):\n    return a + b + offset\n"
    found = extract(f"```python\n{main}```\n```python\noffset = 5\nprint(add(1, 2))\n```\n", "add")
    assert found.program == main


@pytest.mark.parametrize(
    "label",
    ["❌ Wrong:", "## Incorrect attempt", "**Bad:**", "Buggy version:", "Wrong", "> ✗ Do not:"],
)
def test_a_block_whose_label_calls_it_wrong_comes_last(label):
    assert_is(extract(f"Good:\n{FENCED}\n{label}\n\n{SUB_BLOCK}", "add"), ADD)
    assert_is(extract(f"{label}\n{SUB_BLOCK}", "add"), SUB)
    loop = f"It was wrong:\n```python\n{LOOP}```\n"
    assert_is(extract(f"{label}\n{SUB_BLOCK}{loop}", "add"), LOOP)


TURNS = {
    "User": f"{FENCED}\nUser: and the difference?\n\nAssistant:\n{SUB_BLOCK}",
    "Human": f"{FENCED}\nHuman: no\nAI: {SUB_BLOCK}",
    "bold": f"{FENCED}\n**User:** no\n\n**Assistant:**\n\n{SUB_BLOCK}",
    "headings": f"{FENCED}\n### User:\nno\n\n### Assistant:\n{SUB_BLOCK}",
}


@pytest.mark.parametrize("name", TURNS)
def test_turns_that_the_model_made_up_are_no_part_of_the_answer(name):
    assert_is(extract(TURNS[name], "add"), ADD)


@pytest.mark.parametrize(
    "answer",
    [
        f"Assistant:\n{FENCED}",
        f"User: add\n\nAssistant:\n{FENCED}",
        f"A dialogue:\n\nUser: add\nAssistant: so\n\n{FENCED}",
        f"{SUB_BLOCK}\nUser: this is wrong\n\n{FENCED}",
        f"{SUB_BLOCK}\n```\nUser: no\nAssistant: yes\n```\n{FENCED}",
    ],
)
def test_words_of_a_dialogue_end_no_answer(answer):
    assert_is(extract(answer, "add"), ADD)


def test_an_answer_ends_a_thought_that_has_no_end():
    thought = f"<think>\n{SUB_BLOCK}so"
    assert_is(extract(f"{thought}\n<answer>\n{FENCED}</answer>", "add"), ADD)
    assert_is(extract(f"{thought}\n<answer>\n{ADD}</answer>\n<|im_end|>\n", "add"), ADD)
    for rest in (f"\n<answer>\n{FENCED}</answer>\nno, wait", f" <answer>{FENCED}</answer>", FENCED):
        assert extract(thought + rest, "add").reason == NoProgram.NO_CODE


def test_a_test_that_has_its_own_input_is_no_program_for_stdin():
    test = "import io, sys\nsys.stdin = io.StringIO('2\\n')\nprint(int(input()) * 3)\n"
    answer = f"```python\n{TRIPLE}```\nTest it:\n```python\n{test}```\n"
    assert extract(answer, "").program == TRIPLE
    assert extract(f"```python\n{test}```\n", "").program == test
    again = "import io, sys\nsys.stdin = io.StringIO(sys.stdin.read())\nprint(int(input()) * 3)\n"
    assert extract(f"```python\n{TRIPLE}```\n```python\n{again}```\n", "").program == again
