"""Tests of which part of a model's answer counts as the program."""

import ast
import textwrap

import pytest

from engine.events.states import NoProgram
from engine.problems.answers.marks import is_thought_mark, opened_thought
from engine.problems.extraction import MAX_CHARS, extract, extract_program
from tests.helpers.luck import luck

ADD = "def add(a, b):\n    return a + b\n"
SUB = "def add(a, b):\n    return a - b\n"
FENCED = f"```python\n{ADD}```\n"
TRIPLE = "n = int(input())\nprint(n * 3)\n"


def indented(text, by):
    return textwrap.indent(text, by, lambda line: True)


def same(program, expected):
    try:
        return ast.dump(ast.parse(program)) == ast.dump(ast.parse(expected))
    except SyntaxError:
        return False


def test_an_answer_without_fences_is_the_program():
    assert extract_program(ADD) == ADD
    assert extract_program(ADD, "add") == ADD


def test_the_last_block_that_parses_wins():
    answer = f"First:\n```python\n{SUB}```\nBetter:\n```py\n{ADD}```\nOutput:\n```\n3 apples\n```\n"
    assert extract_program(answer) == ADD
    assert extract_program(answer, "add") == ADD


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


FENCES = {
    "in a list": "1. Add:\n\n" + indented(FENCED, "   ") + "\n2. Done.\n",
    "in a deeper list": "- Add:\n  - so:\n\n" + indented(FENCED, "      "),
    "by a tab": "* Add:\n\n" + indented(FENCED, "\t"),
    "behind the mark of an item": "- " + indented(FENCED, "  ").lstrip(),
    "in a list, code not indented": "1. Add:\n   ```python\n" + ADD + "   ```\n",
    "in a list, blank line": "- A:\n\n"
    + indented("```python\nx = 1\n", "    ") + "\n" + indented(f"{ADD}```\n", "    "),
    "in a quote": "As said:\n" + indented(FENCED, "> "),
    "in a quote without blanks": indented(FENCED, ">"),
    "in a quote of a quote": indented(FENCED, "> > "),
    "quoted list": "> 1. Add:\n>\n" + indented(FENCED, ">    "),
    "tildes": f"~~~python\n{ADD}~~~\n",
    "four tildes": f"~~~~py\n{ADD}~~~~\n",
    "four ticks": f"````python\n{ADD}````\n",
    "six ticks": f"``````python\n{ADD}``````\n",
    "after text": f"Here it is: ```python\n{ADD}```\n",
    "after bold text": f"**Solution:** ```py\n{ADD}```\n",
    "after text without language": f"Here it is: ```\n{ADD}```\n",
    "tildes after text": f"Here it is: ~~~python\n{ADD}~~~\n",
    "closed at the end of a line": f"```python\n{ADD.rstrip()}```\n\nIt adds.\n",
    "closed at the end of a line, more blocks": f"```python\n{ADD.rstrip()}```\n\n```\n12\n```\n",
    "both in lines": f"Here: ```python\n{ADD.rstrip()}``` It adds.\n",
    "closed with text after it": f"```python\n{ADD}``` It adds.\n",
    "markdown": f"```markdown\nSo:\n\n{FENCED}\nThat is all.\n```\n",
    "longer markdown": f"````md\nSo:\n\n{FENCED}\nThat is all.\n````\n",
    "markdown with output": f"```markdown\nSo:\n\n{FENCED}\nGives\n\n```\n12\n```\nDone.\n```\n",
    "code on the fence's line": f"```python {ADD}```\n",
    "code on the fence's line without a language": f"```{ADD}```\n",
    "language in braces": f"```{{.python .numberLines}}\n{ADD}```\n",
    "language with a title": f'```python title="add.py"\n{ADD}```\n',
    "capital language": f"```Python3\n{ADD}```\n",
    "a file's name": f"```add.py\n{ADD}```\n",
    "blank before the language": f"``` python\n{ADD}```\n",
    "a fence in a docstring": '```python\ndef add(a, b):\n    """Adds.\n\n    ```\n    add(1, 2)\n'
    '    ```\n    """\n    return a + b\n```\n',
    "never closed, then closed": f"```python\ndef add(a:\n\nNo:\n\n{FENCED}",
    "never closed, then prose": f"```python\n{ADD}\nThis adds both numbers, it's O(1).\n",
    "prose in the block": f"```python\n{ADD}\nThe answer is the sum of both.\n```\n",
    "a stray fence before": f"```\n\n{FENCED}",
    "code of the whole block indented": f"```python\n{indented(ADD, '    ')}```\n",
    "crlf": f"So:\n\n{FENCED}\nDone.\n".replace("\n", "\r\n"),
    "byte order mark": f"\ufeff{FENCED}",
    "byte order mark and no fence": f"\ufeff{ADD}",
    "byte order mark in the block": f"```python\n\ufeff{ADD}```\n",
    "zero-width blanks": f"\u200b```python\u200b\n\u200b{ADD}\u200b```\u200b\n",
    "zero-width blanks at line ends": FENCED.replace("\n", "\u200b\n"),
    "non-breaking blanks": FENCED.replace("    ", "\u00a0\u00a0\u00a0\u00a0"),
    "non-breaking blanks everywhere": f"So:\n\n{FENCED}".replace(" ", "\u00a0"),
    "non-breaking blanks without a fence": ADD.replace(" ", "\u00a0"),
    "a block in Markdown without fences": f"Add:\n\n{indented(ADD, '    ')}\nThat is all.\n",
    "after prose without a fence": f"The sum is what is asked for.\n\n{ADD}",
    "between prose without a fence": f"Here it is:\n\n{ADD}\nIt's simple: O(1).\n",
    "before prose that parses": f"{ADD}\nO(1)\n",
    "before an annotation": f"{ADD}\nComplexity: O(1)\n",
    "two pieces without a fence": f"Here it is:\n\n{ADD}\nUse it so:\n\nprint(add(1, 2))\n",
    "answer": f"<answer>\n{FENCED}</answer>\n",
    "answer without a fence": f"Sure.\n<answer>\n{ADD}</answer>\n",
    "answer on one line": f"<answer>{ADD}</answer>",
    "answer after a draft": f"```python\n{SUB}```\nno:\n<answer>\n{ADD}</answer>\n",
    "python": f"[PYTHON]\n{ADD}[/PYTHON]\n[TESTS]\nassert add(1, 2) == 3\n[/TESTS]\n",
    "python on one line": f"[PYTHON]{ADD.rstrip()}[/PYTHON]",
    "solution": f"<solution>\n{ADD}</solution>",
    "begin of solution": f"<|begin_of_solution|>\n{FENCED}<|end_of_solution|>",
    "llama's header": f"<|start_header_id|>assistant<|end_header_id|>\n\n{FENCED}<|eot_id|>",
    "closed by fewer ticks": f"````python\n{ADD}```\n\nThat is all.\n",
    "closed by tildes": f"```python\n{ADD}~~~\n",
    "the language on its own line": f"```\npython\n{ADD}```\n",
    "quotes for ticks": f"So:\n\n'''python\n{ADD}'''\n",
    "after one word": f"Solution\n\n{ADD}",
    "after a rule": f"# Addition\n---\n{ADD}---\nDone\n",
    "in a web page": f"<pre><code>\n{ADD}</code></pre>\n",
    "after other letters": f"这是代码：\n{ADD}",
    "old line ends": f"So:\n{FENCED}".replace("\n", "\r"),
    "an empty thought": f"<think>\n\n</think>\n\n{FENCED}",
    "a thought that is empty by its mark": f"<think/>\n{FENCED}",
    "python's mark": f"<|python_tag|>{ADD}<|eom_id|>",
    "latex": f"\\begin{{verbatim}}\n{ADD}\\end{{verbatim}}\n",
    "a thought in bold": f"**<think>**\n```python\n{SUB}```\n**</think>**\n\n{ADD}",
    "begin and done": f"[BEGIN]\n{ADD}[DONE]\n",
    "begin and done with quotes": f"[BEGIN]\n'{ADD}'[DONE]\n",
    "done, then another task": f"{ADD}[DONE]\nYou are asked again:\n[BEGIN]\n{SUB}[DONE]\n",
    "colours of a terminal": FENCED.replace("def", "\x1b[1;34mdef\x1b[0m"),
    "NUL": FENCED.replace("return", "return\0"),
    "the next turn": f"{FENCED}<|im_end|>\n<|im_start|>user\nAnother:\n```python\n{SUB}```\n",
}  # fmt: skip


@pytest.mark.parametrize("name", FENCES)
def test_a_program_is_taken_from_any_fence(name):
    found = extract(FENCES[name], "add")
    expected = ADD if "blank line" not in name else f"x = 1\n{ADD}"
    if "docstring" not in name:
        assert same(found.program, expected), found
    else:
        assert found.program.endswith("return a + b\n")
    assert found.reason is None


ENDS = (
    "<|im_end|>", "<|eot_id|>", "</s>", "<|endoftext|>", "<end_of_turn>", "<|end|>", "<|eom_id|>",
    "<｜end▁of▁sentence｜>", "<|end_of_text|>", "<eos>", "<|EOT|>", "<|return|>", "[/INST]",
    "<|END_OF_TURN_TOKEN|>", "<EOD>", "<|endofturn|>", "<|im_end|>\n<|endoftext|>",
)  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_a_turn_is_no_part_of_the_program(end):
    for answer in (
        f"{FENCED.rstrip()}{end}",
        f"{FENCED}{end}\n",
        f"{ADD.rstrip()}{end}",
        f"{ADD}{end}",
        f"```python\n{ADD}{end}",
        f"```python\n{ADD.rstrip()}{end}\n```",
    ):
        assert same(extract_program(answer, "add"), ADD), answer


NOISE = {
    "output": "```\n12\n```\n",
    "words": "```\n3 apples\n```\n",
    "cost": "```\nO(1)\n```\n",
    "usage": "```python\nprint(add(4, 8))\n```\n",
    "asserts": "```python\nassert add(1, 2) == 3\nassert add(0, 0) == 0\n```\n",
    "test": "```python\ndef test_add():\n    assert add(1, 2) == 3\n```\n",
    "unit test": "```python\nimport unittest\nfrom solution import add\n\n"
    "class TestAdd(unittest.TestCase):\n    def test(self):\n"
    "        self.assertEqual(add(1, 2), 3)\n```\n",
    "json": '```json\n{"a": 1, "b": 2}\n```\n',
    "json without a language": '```\n{"a": 1}\n```\n',
    "diff": "```diff\n-    return a - b\n+    return a + b\n```\n",
    "install": "```bash\npip install numpy\n```\n",
    "shell": "```\n$ python add.py\n3\n```\n",
    "a word": "```\nls\n```\n",
    "doctest": "```python\n>>> add(1, 2)\n3\n```\n",
    "pseudocode": "```pseudocode\ndef add(a, b): return b\n```\n",
    "javascript": "```javascript\nadd = sum\n```\n",
    "julia": "```julia\nadd = max\n```\n",
    "stub": '```python\ndef add(a, b):\n    """Adds."""\n```\n',
    "signature": "```python\ndef add(a, b):\n    ...\n```\n",
    "inline": "Call ```add(1, 2)``` or `add`.\n",
    "tildes": "It adds~~~ two ~~~ numbers ~~~\n",
    "quote": "> It is `a + b`.\n",
    "table": "| a | b |\n|---|---|\n| 1 | 2 |\n",
    "prose": "It's O(1), as `add` needs one step.\n",
}  # fmt: skip


@pytest.mark.parametrize("name", NOISE)
def test_the_block_that_defines_the_entry_point_is_chosen(name):
    noise = NOISE[name]
    for answer in (f"{FENCED}\nMore:\n\n{noise}", f"{noise}\n{FENCED}", f"{noise}\n{ADD}"):
        assert same(extract_program(answer, "add"), ADD), answer


THOUGHTS = (
    ("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>"),
    ("<thought>", "</thought>"), ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("◁think▷", "◁/think▷"), ("[THINK]", "[/THINK]"), ("<seed:think>", "</seed:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"), ("<|think|>", "<|/think|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"), ("<Thinking>", "</Thinking>"),
    ("<|channel|>analysis<|message|>",
     "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|channel|>commentary to=x <|constrain|>json<|message|>", "<|channel|>final<|message|>"),
    ("<|channel>thought\n", "<channel|>"), ("<scratchpad>", "</scratchpad>"),
    ('<think time="3">', "</think>"), ("<analysis>", "</analysis>"),
    ("<longcat_think>", "</longcat_think>"), ("<antThinking>", "</antThinking>"),
    ("<deep_think>", "</deep_think>"), ("<chain_of_thought>", "</chain_of_thought>"),
    ("<self-reflection>", "</self-reflection>"),
    ("<unused94>thought\n", "<unused95>"), ("[BEGIN_THINK]", "[END_THINK]"),
    ("<|im_start|>think\n", "<|im_end|>\n<|im_start|>answer\n"),
    ("Here is my thought process:", "Here is my response:"),
)  # fmt: skip
SPELLINGS = (
    ("<start_working_out>", "<end_working_out>"), ("<reasoning_steps>", "</reasoning_steps>"),
    ("<思维链>", "</思维链>"), ("<思考過程>", "</思考過程>"), ("<생각>", "</생각>"),
    ("<размышления>", "</размышления>"), ("<pensamiento>", "</pensamiento>"),
    ("<Réflexion>", "</Réflexion>"), ("＜think＞", "＜/think＞"), ("<｜think｜>", "<｜/think｜>"),
    ("<|startofthought|>", "<|endofthought|>"), ("<scratch-pad>", "</scratch-pad>"),
    ("<self_critique>", "</self_critique>"), ("<inner_dialogue>", "</inner_dialogue>"),
    ("<ifm|think_start|>", "<ifm|think_end|>"), ("<ifm|think|>", "</ifm|think>"),
    ("<acme:reasoning>", "</acme:reasoning>"), ("<|acme|thinking|>", "<|/acme|thinking|>"),
    ("<|think:begin|>", "<|think:end|>"), ("<|open_thinking|>", "<|close_thinking|>"),
    ("<｜begin▁of▁thinking｜>", "<｜end▁of▁thinking｜>"), ("<think-start>", "<think-stop>"),
    ("[|THINK|]", "[|/THINK|]"), ("[|begin_of_thought|]", "[|end_of_thought|]"),
    ("[THINK_START]", "[THINK_END]"), ("⟦think⟧", "⟦/think⟧"), ("«reasoning»", "«/reasoning»"),
    ("<|channel|>analysis\n", "<|channel|>final\n"),
)  # fmt: skip
DRAFTS = {
    "draft": f"```python\n{SUB}```\nno",
    "open fence": f"Maybe\n```python\n{SUB}no, what if",
    "no fence": f"{SUB}\nis wrong",
    "open fence alone": "```\n",
}


@pytest.mark.parametrize(("start", "end"), (*THOUGHTS, *SPELLINGS))
@pytest.mark.parametrize("draft", DRAFTS)
def test_a_thought_never_counts(start, end, draft):
    thought = f"{start}\n{DRAFTS[draft]}\n{end}\n"
    assert same(extract_program(f"{thought}\n{FENCED}", "add"), ADD)
    assert same(extract_program(f"{thought}\n{ADD}", "add"), ADD)
    assert same(extract_program(f"{thought}{FENCED}{thought}", "add"), ADD)
    lines = f"{thought}\n{FENCED}".replace("\n", "\r\n")
    assert same(extract_program(lines, "add"), ADD)
    assert same(extract_program(f"{DRAFTS[draft]}\n{end}\n{FENCED}", "add"), ADD)
    assert extract(f"{thought}I cannot.", "add").program == ""
    assert extract(f"{DRAFTS[draft]}\n{thought}{end}\nI cannot.", "add").program == ""
    unfinished = extract(f"{start}\n{DRAFTS[draft]}\n", "add")
    assert (unfinished.program, unfinished.reason) == ("", NoProgram.NO_CODE)


PAIRS = (
    ("<plan>", "</plan>"), ("<Planning>", "</Planning>"), ("<draft>", "</draft>"),
    ("<brainstorm>", "</brainstorm>"),
    ('<details type="reasoning" done="true">\n<summary>Thought for 3 s</summary>', "</details>"),
    ("<working>", "</working>"), ("<step_by_step>", "</step_by_step>"), ("<hidden>", "</hidden>"),
    ("【思考过程】", "【思考结束】"), ("【思考】", "【最终答案】"), ("[thinking]", "[/thinking]"),
    ("<details open><summary>🧠 Reasoning</summary>", "</details>"),
)  # fmt: skip


@pytest.mark.parametrize(("start", "end"), PAIRS)
def test_a_mark_of_many_meanings_is_one_of_a_thought_in_a_pair_alone(start, end):
    draft = DRAFTS["draft"]
    assert same(extract_program(f"{start}\n{draft}\n{end}\n{ADD}", "add"), ADD)
    assert same(extract_program(f"{FENCED}\n{start}\n{draft}\n{end}", "add"), ADD)
    assert same(extract_program(f"{start}\n{FENCED}", "add"), ADD)
    assert same(extract_program(f"{FENCED}\n{end}\nThat is all.", "add"), ADD)
    # Words between such brackets that end with "thoughts" are a heading.
    assert same(extract_program(f"<my final thoughts>\n{FENCED}", "add"), ADD)
    # It ends no other thought.
    assert not extract_program(f"<think>\n{end}\n{FENCED}", "add")


@pytest.mark.parametrize("name", ["notes", "approach", "a_word-nobody:knows"])
def test_what_follows_an_element_of_whatever_name_comes_first(name):
    draft = DRAFTS["draft"]
    assert same(extract_program(f"<{name}>\n{draft}\n</{name}>\n{ADD}", "add"), ADD)
    assert same(extract_program(f"<{name}>\n{FENCED}\n</{name}>\nThat is all.", "add"), ADD)
    assert same(extract_program(f"<answer>\n{FENCED}\n</answer>\n{SUB}", "add"), ADD)
    plus = "def plus(a, b):\n    return a + b\n"
    main = "def add(a, b):\n    return plus(a, b)\n"
    answer = f"<{name}>\n```python\n{plus}```\n</{name}>\n```python\n{main}```\n"
    assert run(extract_program(answer, "add"), "add", 2, 3) == 5


@pytest.mark.parametrize("start", ["【思考】", "［思考］", "[思考]", "【推理过程】"])
def test_a_heading_is_a_thought_only_if_it_has_an_end(start):
    end, draft = f"{start[0]}/{start[1:]}", DRAFTS["draft"]
    assert same(extract_program(f"{start}\n{draft}\n{end}\n{ADD}", "add"), ADD)
    assert same(extract_program(f"{draft}\n{end}\n{ADD}", "add"), ADD)
    assert same(extract_program(f"{FENCED}\n{start}\n{draft}\n{end}", "add"), ADD)
    assert not extract_program(f"{start}\n{draft}\n{end}\nI cannot.", "add")
    assert same(extract_program(f"{start}\n{FENCED}【说明】O(1)\n", "add"), ADD)
    assert same(extract_program(f"{start} sum\n\n【代码】\n{FENCED}", "add"), ADD)


def test_a_prompt_may_begin_the_thought():
    for start, _ in THOUGHTS[:-1]:
        assert opened_thought(f"<|im_start|>assistant\n{start}\n").strip() == start.strip()
        assert opened_thought(f"{start} Add two numbers.<|im_start|>assistant\n") == ""
    assert opened_thought("<|im_start|>assistant\n<think>\n\n</think>\n\n") == ""
    marks = ["[THINK]", "<|channel|>", "<|END_THINKING|>", "◁/think▷"]
    assert [
        one for one in (*marks, "<|im_end|>", "</s>", "[INST]") if is_thought_mark(one)
    ] == marks


def test_channels_whose_special_tokens_were_not_decoded():
    answer = f"analysisWe add.\n```python\n{SUB}```\nassistantfinal{FENCED}"
    assert extract_program(answer.replace(FENCED, ADD), "add") == ADD
    assert extract_program(answer, "add") == ADD
    assert extract_program(f"analysisWe add.\n```python\n{SUB}```", "add") == ""


def test_a_mark_that_is_cited_is_no_mark():
    program = (
        "import re\n\n\ndef strip(text):\n    # removes <think> and what follows\n"
        "    text = re.sub(r'<think>.*?</think>', '', text)\n"
        "    return text.split('</think>')[-1].replace(\"<|im_end|>\", '').strip('</s>')\n"
    )
    for answer in (program, f"```python\n{program}```\n", f"Drop `<think>`:\n\n```\n{program}```"):
        assert extract_program(answer, "strip") == program


def run(program, name, *arguments):
    space = {}
    exec(program, space)  # of this file
    return space[name](*arguments)


def test_what_the_block_lacks_comes_from_the_others():
    answer = (
        "Imports:\n```python\nfrom __future__ import annotations\nimport math\nx = input()\n```\n"
        "Helper:\n```python\nTABLE = {}\nTABLE[1] = 5\nTABLE.update({2: 6})\n\n"
        "def half(n):\n    return math.floor(n / 2)\n\nprint(half(3))\nassert half(3) == 2\n```\n"
        "Class:\n```python\n@staticmethod\ndef unused():\n    pass\n\n"
        "class Box:\n    size = 4\n```\n"
        "Main:\n```python\nfrom __future__ import annotations\n\n"
        "def f(n):\n    return half(n) + TABLE[1] + TABLE[2] + Box.size + more(n)\n```\n"
        "And:\n```python\ndef more(n):\n    return 100 * n\n```\n"
        "Use:\n```python\nhalf = None\nprint(f(3))\n```\n"
    )
    program = extract_program(answer, "f")
    assert run(program, "f", 5) == 2 + 5 + 6 + 4 + 500
    assert "print" not in program and "input" not in program and "unused" not in program


def test_the_later_definition_takes_helpers_of_the_draft():
    draft = "import math\n\ndef helper(x):\n    return math.sqrt(x)\n\ndef f(x):\n    return 0\n"
    final = "def f(x):\n    return helper(x) + 1\n"
    program = extract_program(f"```python\n{draft}```\nBetter:\n```python\n{final}```\n", "f")
    assert run(program, "f", 9) == 4


def test_a_method_is_defined_by_its_class():
    right = "class Solution:\n    def add(self, a, b):\n        return a + b\n"
    other = "class Solution:\n    def sub(self, a, b):\n        return a - b\n"
    answer = f"```python\n{right}```\n```python\n{other}```\n```python\n{ADD}```\n"
    assert extract_program(answer, "Solution.add") == right
    assert extract_program(answer, "add") == ADD


STDIN_NOISE = {
    "sample": "For 5:\n\n```\n15\n```\n",
    "tagged sample": "For 5:\n\n```python\n15\n```\n",
    "string": "```\n'Yes'\n```\n",
    "input": "```\n5\n```\n",
    "json": '```json\n{"n": 5}\n```\n',
    "shell": "```\n$ echo 5 | python x.py\n```\n",
    "call": "```\npython3(main.py)\n```\n",
    "cost": "```\nO(1)\n```\n",
    "print": "```python\nprint(15)\n```\n",
    "function": "```python\ndef triple(n):\n    return n * 3\n```\n",
    "test": "```python\nimport io, sys\nsys.stdin = io.StringIO('5')\n```\n",
    "ruby": "```ruby\nprint(input() * 3)\n```\n",
    "excerpt": "The last line:\n```python\nprint(n * 3)\n```\n",
}


@pytest.mark.parametrize("name", STDIN_NOISE)
def test_a_program_for_stdin_reads_and_prints(name):
    noise = STDIN_NOISE[name]
    fenced = f"```python\n{TRIPLE}```\n"
    for answer in (f"{fenced}\n{noise}", f"{noise}\n{fenced}", f"So:\n\n```\n{TRIPLE}```\n{noise}"):
        assert extract_program(answer, "") == TRIPLE, answer
    assert same(extract_program(f"Read, then print:\n\n{TRIPLE}\nThat is all.\n", ""), TRIPLE)


@pytest.mark.parametrize(
    "program",
    [
        "import sys\nn = int(sys.stdin.readline())\nsys.stdout.write(str(n * 3))\n",
        "print(int(open(0).read()) * 3)\n",
        "import os\nos.write(1, os.read(0, 9))\n",
        "import fileinput\nfor line in fileinput.input():\n    print(line)\n",
        "from sys import stdin, stdout\nstdout.write(stdin.read())\n",
        "def main():\n    print(input())\n\nif __name__ == '__main__':\n    main()\n",
        "from pathlib import Path\nprint(Path('/dev/stdin').read_text())\n",
    ],
)
def test_ways_to_read_and_print(program):
    answer = f"```python\n{program}```\n```python\nprint('Yes')\n```\n"
    assert extract_program(answer, "") == program


def test_an_excerpt_of_a_program_for_stdin_is_not_the_program():
    whole = "import sys\n\ndef f(n):\n    return n * 3\n\nfor n in sys.stdin:\n    print(f(n))\n"
    excerpt = "n = int(input())\nprint(f(n))\n"
    assert extract_program(f"```python\n{whole}```\nIt is\n```python\n{excerpt}```\n", "") == whole


def test_a_program_for_stdin_that_another_block_starts_is_completed():
    main = "def main():\n    print(int(input()) * 3)\n"
    start = "if __name__ == '__main__':\n    main()\n"
    answer = f"```python\n{main}```\nStart it:\n```python\n{start}```\n"
    assert same(extract_program(answer, ""), f"{main}{start}")
    assert extract_program(f"```python\n{main}```\n", "") == main


def test_the_last_of_two_programs_for_stdin_counts():
    answer = f"```python\nprint(input())\n```\nno:\n```python\n{TRIPLE}```\n"
    assert extract_program(answer, "") == TRIPLE


REASONS = {
    "I would add both numbers.": NoProgram.NO_CODE,
    "": NoProgram.NO_CODE,
    "add": NoProgram.NO_CODE,
    "```python\ndef add(a, b:\n```": NoProgram.DOES_NOT_PARSE,
    "def add(a, b)\n    return a + b\n": NoProgram.DOES_NOT_PARSE,
    "```javascript\nadd = 1\n```": NoProgram.DOES_NOT_PARSE,
    "```python\ndef plus(a, b):\n    return a + b\n```": NoProgram.NO_ENTRY_POINT,
    "def plus(a, b):\n    return a + b\n": NoProgram.NO_ENTRY_POINT,
    "```\n12\n```": NoProgram.NO_ENTRY_POINT,
    f"```python\n{ADD}```": None,
}


@pytest.mark.parametrize("answer", REASONS)
def test_an_answer_without_a_program_has_a_reason(answer):
    reason = REASONS[answer]
    assert extract(answer, "add").reason == reason
    assert extract(answer, "add", cut=True).reason == (reason and NoProgram.CUT_AT_LIMIT)


def test_a_program_without_the_entry_point_is_kept_for_a_refinement():
    plus = "def plus(a, b):\n    return a + b\n"
    assert extract_program(f"```python\n{plus}```\n```\n12\n```\n", "add") == plus
    assert extract_program(plus, "add") == plus
    assert extract_program("```\n12\n```", "add") == ""


def test_an_answer_that_was_cut():
    assert extract_program(f"So:\n```python\n{ADD}", "add") == ADD
    assert extract_program(f"So:\n```python\n{ADD}\nprint(add(1,", "add") == ""
    assert (
        extract_program(f"{FENCED}Faster:\n```python\ndef add(a, b):\n    return (a", "add") == ADD
    )
    # What was cut may still parse.
    answer = f"{FENCED}Faster:\n```python\ndef add(a, b):\n    retu"
    assert extract(answer, "add", cut=True).program == ADD
    assert extract(f"```python\n{SUB}```\n```python\n{ADD}", "add").program == ADD


PROGRAMS = (
    ("add", ADD),
    ("f", 'def f(s):\n    """Doc.\n\n    >>> f("a")\n    1\n    """\n    return len(s)  # `len`\n'),
    ("g", "import math\n\n\ndef h(x):\n    return math.sqrt(x)\n\n\ndef g(x):\n    return h(x)\n"),
    ("Solution.go", "class Solution:\n    def go(self, n):\n        if n:\n            return 1\n"),
    ("k", "from functools import cache\n\n@cache\ndef k(n):\n\n    return k(n - 1) if n else 0\n"),
    ("m", "m = lambda x: x + 1\n"),
    ("p", "def p(x):\n\tif x:\n\t\treturn '```'\n\treturn '<think>'\n"),
    ("", TRIPLE),
    ("", "import sys\n\ndef main():\n    print(sys.stdin.read())\n\nmain()\n"),
)
BARE_NOISE = [noise for name, noise in NOISE.items() if name not in ("stub", "signature", "inline")]


def random_answer(random, program, text_noise):
    """Returns an answer that holds the program in one of many ways, amid noise."""
    fence = random.choice(("```", "````", "~~~", "`````"))
    tag = random.choice(("python", "py", "Python", "python3", "" if fence[0] == "`" else "python"))
    if random.random() < 0.2:
        body = f"{fence}{tag}\n{program.rstrip()}{fence}\n" if fence[0] == "`" else program
    else:
        body = f"{fence}{tag}\n{program}{fence}\n"
    if body != program:
        lead = random.choice(("", "", "  ", "   ", "    ", "\t", "> ", ">> ", "      "))
        body = indented(body, lead)
        if not lead and random.random() < 0.2:
            body = f"Here it is: {body}"
    before = [random.choice(text_noise) for _ in range(random.randrange(3))]
    after = [random.choice(text_noise) for _ in range(random.randrange(3))]
    answer = "\n\n".join([*before, "The program:\n", body, *after])
    if random.random() < 0.2:
        answer = f"```markdown\n{answer}\n```\n"
    if random.random() < 0.2:
        answer = f"<answer>\n{answer}\n</answer>"
    if random.random() < 0.5:
        start, end = random.choice(THOUGHTS)
        draft = random.choice((*DRAFTS.values(), f"```python\n{program}", f"{program}\nno"))
        start = random.choice((start, "")) if "Here" not in start else start
        answer = f"{start}\n{draft}\n{end}\n{answer}"
    if random.random() < 0.3:
        answer += random.choice(ENDS)
    if random.random() < 0.2:
        answer = answer.replace("\n", "\r\n")
    if random.random() < 0.2:
        answer = "\ufeff" + answer
    return answer


def test_a_random_answer_gives_its_program_back():
    random = luck()
    for _ in range(400):
        name, program = random.choice(PROGRAMS)
        noise = BARE_NOISE if name else [n for k, n in STDIN_NOISE.items() if k != "excerpt"]
        noise = [one for one in noise if name != "add" or "def add" not in one]
        answer = random_answer(random, program, noise)
        assert same(extract_program(answer, name), program), answer


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


@pytest.mark.parametrize(
    "hostile",
    [
        "<think>" * 700,
        "</think>" * 700,
        "<" * 5_000,
        "<<a" * 2_000,
        "◁" * 5_000,
        "<|channel|>a" * 400,
        "```\n" * 800,
        "```python\n" * 500,
        '```python\n"""\n' * 300,
        "> " * 3_000,
        "# a\n" * 800,
        "import x\nProse here.\n(\n" * 200,
        "x = (\n" * 800,
        "def f():\n" * 500,
        "if x: pass\n" + "elif x: pass\n" * 900 + "def g(): h\n",
        "def g(): return " + "x." * 800 + "y\n",
        "x.y(1)\n" * 700,
        "<answer>" * 700,
    ],
)
def test_a_hostile_answer_takes_bounded_work(hostile):
    for text in (hostile, f"{FENCED}{hostile}", f"{hostile}\n\n{FENCED}"):
        assert extract(text, "missing").reason
        assert extract(text, "missing", cut=True).reason == NoProgram.CUT_AT_LIMIT
