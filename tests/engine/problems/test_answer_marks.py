"""Tests of marks and shapes that models of few families write, and of programs that cite marks."""

import json

import pytest

from engine.events.states import NoProgram
from engine.problems.extraction import extract
from tests.engine.problems.test_answer_shapes import ADD, FENCED, LOOP, SUB, assert_is
from tests.engine.problems.test_extraction import run

SUB_BLOCK = f"```python\n{SUB}```\n"
THOUGHTS = {
    "an escaped end": ("<think>", "<\\/think>"),
    "a channel for a language": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final <|constrain|>python<|message|>",
    ),
    "Apriel": ("Here are my reasoning steps:\n", "\n[BEGIN FINAL RESPONSE]\n"),
}


@pytest.mark.parametrize("draft", [SUB, SUB_BLOCK, f"```python\n{SUB}"])
@pytest.mark.parametrize("name", THOUGHTS)
def test_a_thought_of_another_spelling_never_counts(name, draft):
    start, end = THOUGHTS[name]
    assert_is(extract(f"{start}So\n{draft}\nno.{end}{ADD}", "add"), ADD)
    assert_is(extract(f"So\n{draft}\nno.{end}{FENCED}", "add"), ADD)
    alone = extract(f"{start}So\n{draft}\nyes.{end}I cannot.", "add")
    assert alone.program == "" and alone.reason
    assert extract(f"{start}So\n{draft}", "add").reason == NoProgram.NO_CODE


CITING = {
    "a docstring": 'def add(a, b):\n    """Adds <think>a</think> to b."""\n    return a + b\n',
    "a docstring of lines": 'def add(a, b):\n    """\n<think>\n</think>\n    """\n    return b\n',
    "the end of a comment": "def add(a, b):\n    return a + b  # after </think>\n",
    "a string of lines": "TEXT = '''\n</thinking>\n'''\ndef add(a, b):\n    return a + b\n",
    "printed lines": "def add(a, b):\n    print('<think>')\n    print('</think>')\n",
}


@pytest.mark.parametrize("name", CITING)
@pytest.mark.parametrize("thought", ["", f"<think>\n{SUB_BLOCK}</think>\n", f"{SUB}</think>\n"])
def test_a_program_may_cite_marks_of_thoughts(name, thought):
    program = CITING[name]
    assert_is(extract(f"{thought}So:\n\n```python\n{program}```\nDone.\n", "add"), program)


def test_a_mark_that_ends_a_thought_within_a_block_is_not_cited():
    draft = f"```python\n{SUB}no\n</think>\n"
    assert_is(extract(f"{draft}{FENCED}", "add"), ADD)
    assert_is(extract(f"{draft}```\n{ADD}```\n", "add"), ADD)


NEXT_FILES = ["<file_sep>", "<|file_sep|>", "<repo_name>", "<jupyter_output>", "<empty_output>"]


@pytest.mark.parametrize("mark", NEXT_FILES)
def test_a_base_model_goes_on_with_another_file(mark):
    assert_is(extract(f"{ADD}{mark}import os\n{SUB}", "add"), ADD)
    assert_is(extract(f"{mark}{ADD}{mark}{SUB}", "add"), ADD)
    assert_is(extract(f"<jupyter_text>Sum.<jupyter_code>{ADD}{mark}3", "add"), ADD)


def test_ends_of_further_turns():
    assert_is(extract(f"{ADD.rstrip()}[|endofturn|]", "add"), ADD)
    for person, model in (
        ("### Instruction:\n", "### Response:\n"),
        ("@@ Instruction\n", "@@ Response\n"),
        ("USER: ", "ASSISTANT: "),
    ):
        assert_is(extract(f"{FENCED}\n{person}no\n\n{model}{SUB_BLOCK}", "add"), ADD)
        assert_is(extract(f"{person}add\n\n{model}{FENCED}", "add"), ADD)


CODE = {"code": ADD}
CALLS = {
    "Mistral": f"[TOOL_CALLS][{json.dumps({'name': 'run', 'arguments': CODE})}]",
    "Mistral 3": f"[TOOL_CALLS]run[ARGS]{json.dumps(CODE)}",
    "Llama": f"<function=run>{json.dumps(CODE)}</function>",
    "Granite": f"Running it.\n<tool_call>[{json.dumps({'name': 'run', 'arguments': CODE})}]",
    "Phi": f"functools[{json.dumps({'name': 'run', 'arguments': CODE})}]",
    "GLM": f"<tool_call>run\n<arg_key>code</arg_key>\n<arg_value>{ADD}</arg_value>\n</tool_call>",
    "MiniMax": f'<invoke name="run">\n<parameter name="code">{ADD.rstrip()}</parameter>\n</invoke>',
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_a_tool_may_hold_the_program(name):
    assert_is(extract(CALLS[name], "add"), ADD)
    assert_is(extract(f"{CALLS[name]}\n\n{FENCED.replace(ADD, LOOP)}", "add"), LOOP)


@pytest.mark.parametrize(
    "answer",
    [
        f"{{% highlight python %}}\n{ADD}{{% endhighlight %}}\nDone.",
        f"So:\n[python]\n{ADD}[/python]\n",
        f"=== add.py ===\n{ADD}=== end ===\n",
        f"$$$\n{ADD}$$$\n",
        f"<<<\n{ADD}>>>\n",
        f"```python\n{ADD}print(add(1, 2))\n=> 3\n```\n",
        ">!" + ADD.rstrip().replace("\n", "\n>!"),
        *(
            "```\n"
            + "".join(f"{mark % n}{line}\n" for n, line in enumerate(ADD.split("\n"), 1))
            + "```"
            for mark in ("(%d) ", "/* %d */ ", "%d - ", "#%d ", "%d:")
        ),
    ],
)
def test_a_program_is_taken_from_rare_frames(answer):
    kept = extract(answer, "add").program.replace("print(add(1, 2))\n", "")
    assert_is(extract(kept, "add"), ADD)
    assert run(extract(answer, "add").program, "add", 1, 2) == 3


@pytest.mark.parametrize(
    "label",
    [
        "A common mistake is:",
        "Don't do this:",
        "This is wrong:",
        "**What not to do**",
        "Avoid this:",
    ],
)
def test_what_an_answer_warns_of_comes_last(label):
    assert_is(extract(f"{FENCED}\n{label}\n\n{SUB_BLOCK}", "add"), ADD)
    assert_is(extract(f"{label}\n{SUB_BLOCK}", "add"), SUB)
    assert_is(extract(f"{SUB_BLOCK}This fixes a common mistake:\n{FENCED}", "add"), ADD)


def test_an_ellipsis_for_the_body_is_no_program():
    later = "```python\ndef add(a, b):\n    return ...\n```\n"
    assert_is(extract(f"{FENCED}Its signature:\n{later}", "add"), ADD)


def test_what_a_wrapper_lacks_stands_around_it():
    main = "def add(a, b):\n    return plus(a, b)\n"
    helper = "```python\ndef plus(a, b):\n    return a + b\n```\n"
    answer = f"{helper}<answer>\n```python\n{main}```\n</answer>\n"
    assert run(extract(answer, "add").program, "add", 1, 2) == 3
    other = f"{answer}Not so:\n{SUB_BLOCK}"
    assert_is(extract(other, "add"), main)


def test_a_global_that_is_only_changed_and_names_of_a_star_import_come_along():
    counting = "def add(a, b):\n    global calls\n    calls += 1\n    return a + b\n"
    answer = f"```python\ncalls = 0\n```\n```python\n{counting}```\n"
    assert run(extract(answer, "add").program, "add", 1, 2) == 3
    star, using = "from operator import *\n", ADD.replace("a + b", "pos(a) + b")
    answer = f"```python\n{star}```\n```python\n{using}```\n"
    assert run(extract(answer, "add").program, "add", 1, 2) == 3
