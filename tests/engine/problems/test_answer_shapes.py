"""Tests of the many shapes in which chat models write a program: sessions, spans, web pages, JSON,
numbered lines, labels, languages. None of them may change what an answer with a proper block means.
"""

import ast
import html
import sys
import textwrap

import pytest

from engine.events.states import NoProgram
from engine.problems.answers.parser import Parser, budget
from engine.problems.extraction import MAX_CHARS, extract
from tests.helpers.large import large_but

ADD = "def add(a, b):\n    return a + b\n"
SUB = "def add(a, b):\n    return a - b\n"
LOOP = "def add(a, b):\n    while b:\n        a += 1\n        b -= 1\n\n    return a\n"
ONE = "def add(a, b): return a + b"
LAMBDA = "add = lambda a, b: a + b"
LESS = "def add(a, b):\n    while a < 0 and b > 0:\n        a, b = a + 1, b - 1\n    return a + b\n"
SOLUTION = "class Solution:\n    def add(self, a, b):\n        return a + b\n"
TRIPLE = "n = int(input())\nprint(n * 3)\n"
MAIN = 'def main():\n    print(int(input()) * 3)\n\nif __name__ == "__main__":\n    main()\n'
FENCED = f"```python\n{ADD}```\n"


def session(text, prompt=">>> ", more="... ", end=True):
    lines = [(more if not line or line[0] == " " else prompt) + line for line in text.splitlines()]
    return "\n".join([*lines, more.rstrip()] if end else lines) + "\n"


def diff(*changes, head="--- a/add.py\n+++ b/add.py\n@@ -1,2 +1,2 @@\n"):
    return f"{head}{''.join(changes)}"


def numbered(line, text=LOOP):
    return "".join(line % (i, part) + "\n" for i, part in enumerate(text.splitlines(), 1))


def indented(text, by="    "):
    return textwrap.indent(text, by)


CHANGES = " def add(a, b):\n", "-    return a - b\n", "+    return a + b\n"
CHANGE = diff(*CHANGES)
USED = f"{session(ADD)}>>> add(1, 2)\n3\n"
FAILED = (
    ">>> add(1)\nTraceback (most recent call last):\n  File \"<stdin>\", line 1, in <module>\n"
    "TypeError: add() missing 1 required positional argument: 'b'\n"
)  # fmt: skip

SESSIONS = {
    "alone": session(ADD),
    "used": f"{USED}>>> add(4, 5)\n9\n",
    "in a block": f"```\n{USED}```\n",
    "in a block of Python": f"Here:\n\n```python\n{USED}```\nDone.",
    "in a block of a console": f"Here:\n\n```pycon\n{USED}```\nDone.",
    "in a block with a long name": f"```python-repl\n{USED}```\n",
    "without its end": f"```\n{session(ADD, end=False)}>>> add(1, 2)\n3\n```\n",
    "with a traceback": f"```\n{session(ADD)}{FAILED}```\n",
    "in prose": f"Let us try it:\n\n{USED}\nIt works.\n",
    "indented": indented(USED),
    "with Windows line ends": USED.replace("\n", "\r\n"),
    "without blanks": "```python\n>>>def add(a, b):\n...    return a + b\n```\n",
    "of IPython": "In [1]: def add(a, b):\n   ...:     return a + b\n   ...: \n\n"
    "In [2]: add(1, 2)\nOut[2]: 3\n",
    "with a banner": "```\n$ python3\nPython 3.11.7 (main) [GCC 12] on linux\n"
    f'Type "help", "copyright" or "license" for more information.\n{USED}>>> exit()\n```\n',
}  # fmt: skip
SPANS = {
    "several lines": f"`{ADD.rstrip()}`",
    "own lines": f"`\n{ADD}`\n",
    "several lines in prose": f"Here: `{ADD.rstrip()}` and that is all.",
    "a language": f"`python\n{ADD}`",
    "two ticks": f"``{ADD.rstrip()}``",
    "two ticks and a language": f"``python\n{ADD}``\n",
    "two ticks on own lines": f"``\n{ADD}``\n",
    "a span for each line": "`def add(a, b):`\n`    return a + b`\n",
}
WEB = {
    "pre and code": f"<pre><code>{ADD}</code></pre>",
    "a class": f'<pre><code class="language-python">{ADD}</code></pre>',
    "pre": f'Here:\n<pre class="python">{ADD}</pre>\nThat is it.',
    "code": f"So: <code>{ADD.rstrip()}</code> adds.",
    "the last of two": f"<pre><code>{SUB}</code></pre>\nno\n<pre><code>{ADD}</code></pre>",
    "breaks": "<code>def add(a, b):<br>&nbsp;&nbsp;&nbsp;&nbsp;return a + b</code>",
    "colours": f'<div class="highlight"><pre><span></span>{ADD}</pre></div>',
    "paragraphs": f"<p>The code:</p>\n<pre><code>{ADD}</code></pre>\n<p>It adds.</p>",
    "a closed part": f"<details><summary>Code</summary>\n\n{FENCED}\n</details>",
    "CDATA": f"<code><![CDATA[\n{ADD}]]></code>",
    "an element": f"<python>\n{ADD}</python>",
    "an element with a language": f'<program language="python">\n{ADD}</program>',
    "a comment": f"<!--\n{ADD}-->",
    "a forum": f"[code=python]\n{ADD}[/code]",
    "a wiki": f"{{code:python}}\n{ADD}{{code}}",
    "Org": f"#+BEGIN_SRC python\n{ADD}#+END_SRC\n",
    "reStructuredText": f".. code-block:: python\n\n{indented(ADD)}\nDone.\n",
    "AsciiDoc": f"[source,python]\n----\n{ADD}----\n",
    "LaTeX": f"\\begin{{lstlisting}}[language=Python]\n{ADD}\\end{{lstlisting}}\n",
}
TEXTS = {
    "JSON": '{"code": "def add(a, b):\\n    return a + b\\n"}',
    "JSON in a block": '```json\n{"why": "adds", "code": "def add(a, b):\\n    return a + b"}\n```',
    "a block in JSON": '{"solution": "```python\\ndef add(a, b):\\n    return a + b\\n```"}',
    "a call of a tool": '<tool_call>\n{"name": "python", "arguments": {"code": '
    '"def add(a, b):\\n    return a + b"}}\n</tool_call>',
    "a notebook": '{"cells": [{"source": ["def add(a, b):\\n", "    return a + b\\n"]}]}',
    "a string": '"def add(a, b):\\n    return a + b\\n"',
    "a long string": f'"""\n{ADD}"""',
    "one line": "def add(a, b):\\n    return a + b\\n",
    "one line with a fence": "```python\\ndef add(a, b):\\n    return a + b\\n```",
    "fences of quotes": f"'''\n{ADD}'''\n",
    "fences that are escaped": f"\\`\\`\\`python\n{ADD}\\`\\`\\`\n",
    "a label": f"Answer: {ADD}",
    "a label in bold": f"**Solution:** {ADD}",
    "a role": f"assistant: {ADD}",
    "a quote without a fence": indented(ADD, "> "),
    "headings of comments": f"### Code\n{ADD}\n### Explanation\nIt's O(1).\n",
    "brackets of other letters": f"```python\n{ADD}```".replace("(", "（").replace("):", "）："),
    "other line ends": ADD.replace("\n", "\u2028"),
    "an indented block": f"Here it is:\n\n{indented(ADD)}\n\nIt works.\n",
    "a block indented by a tab": f"Here it is:\n\n{indented(ADD, chr(9))}\n\nIt works.\n",
    "Windows line ends without a fence": f"So:\n\n{ADD}\nThat is it.\n".replace("\n", "\r\n"),
    "a button's text": f"python\nCopy code\n{ADD}",
    "a magic line": f"```python\n%%time\n{ADD}```",
    "a diff of a new file": "```diff\n" + diff(indented(ADD, "+")) + "```\n",
    "a diff of a change": f"```diff\n{CHANGE}```\n",
    "a diff without a language": f"So:\n```\n{CHANGE}```\nDone.\n",
    "a diff without a head": "```python\n" + diff(*CHANGES, head="") + "```\n",
    "a diff without a fence": f"{CHANGE}\nThat is all.\n",
    "a diff of git": f"diff --git a/add.py b/add.py\nindex 1a2b3c4..5d6e7f8 100644\n{CHANGE}"
    "\\ No newline at end of file\n",
    "an installation": f"```python\n!pip install numpy\n{ADD}```",
}
TAGS = (
    'python3 title="x.py"', "python:x.py", "{.python}", "{python}", "{python, eval=FALSE}",
    ' py linenums="1" hl_lines="2"', "python-exec", "python run", "python=", "python=1", '"python"',
    "Python 3", "python3.11", "src/add.py", "python src/add.py", "py:src/add.py", "tool_code",
    "solution", "sage", "ipython3", "python_code", "language: python", "lang=python", "python;",
)  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(answer, id=f"{kind}: {name}")
        for kind, answers in {
            "session": SESSIONS, "span": SPANS, "web": WEB, "text": TEXTS,
            "tag": {tag: f"```{tag}\n{ADD}```" for tag in TAGS},
        }.items()
        for name, answer in answers.items()
    ],
)  # fmt: skip
def test_a_program_is_taken_from_any_shape(answer):
    assert_is(extract(answer, "add"), ADD)


def assert_is(found, expected):
    assert found.reason is None
    assert ast.dump(ast.parse(found.program)) == ast.dump(ast.parse(expected)), found


NUMBERS = ("%d | %s", "%d: %s", "%d. %s", "%d\t%s", "%3d  %s", "%02d  %s", "%2d| %s", "%d) %s",
           "%d %s", "L%d: %s", "[%d] %s", "%5d→%s")  # fmt: skip


@pytest.mark.parametrize("line", NUMBERS)
def test_numbered_lines_are_a_program(line):
    assert_is(extract(f"```python\n{numbered(line)}```\n", "add"), LOOP)
    assert_is(extract(f"The code:\n\n{numbered(line)}\nThat is it.\n", "add"), LOOP)


OTHERS = {
    "a span": (f"`{LAMBDA}`", LAMBDA, "add"),
    "a function in a span": (f"`{ONE}`", ONE, "add"),
    "a span in prose": (f"The function is `{ONE}`. Call `add(1, 2)`.", ONE, "add"),
    "a span with a language": (f"`python {ONE}`", ONE, "add"),
    "a span of two ticks": (f"``{ONE}``", ONE, "add"),
    "a span in bold": (f"**Final answer:** **`{ONE}`**", ONE, "add"),
    "a span in a list": (f"- `{ONE}`\n", ONE, "add"),
    "a span in a table": (f"| code |\n|---|\n| `{ONE}` |\n", ONE, "add"),
    "a program in a span": ("Do: `print(int(input()) * 3)`.", "print(int(input()) * 3)", ""),
    "a program for stdin": (f"```python\n{TRIPLE}```\nIn:\n```\n5\n```\nOut:\n```\n15\n```",
                            TRIPLE, ""),
    "a session of a program": (">>> n = int(input())\n4\n>>> print(n * 3)\n12\n", TRIPLE, ""),
    "main": (f"So:\n\n{MAIN}\nThat is all.\n", MAIN, ""),
    "main after a function": (f"```python\n{ADD}\nif __name__ == '__main__':\n    print(1)\n```",
                              f"{ADD}\nif __name__ == '__main__':\n    print(1)\n", "add"),
    "a method": (f"{session(SOLUTION)}>>> Solution().add(1, 2)\n3\n", SOLUTION, "Solution.add"),
    "a method in a page": (f"<pre>{SOLUTION}</pre>", SOLUTION, "Solution.add"),
    "a method and its use": (
        f"```python\n{SOLUTION}```\n```python\nprint(Solution().add(1, 2))\n```",
        SOLUTION, "Solution.add"),
    "an import in a session": (f"```\n>>> import math\n{session(LOOP)}>>> add(1, 2)\n3\n```\n",
                               f"import math\n{LOOP}", "add"),
    "a lambda in a session": (f">>> {LAMBDA}\n>>> add(1, 2)\n3\n", LAMBDA, "add"),
    "a coroutine": ("```python\nasync def add(a, b):\n    return a + b\n```",
                    "async def add(a, b):\n    return a + b\n", "add"),
    "a decorator": (f"`from functools import cache\n\n@cache\n{ADD}`",
                    f"from functools import cache\n\n@cache\n{ADD}", "add"),
    "two functions": (f"<code>{ADD}\ndef sub(a, b):\n    return a - b\n</code>",
                      f"{ADD}\ndef sub(a, b):\n    return a - b\n", "add"),
    "two blocks": (f"{FENCED}```python\ndef sub(a, b):\n    return a - b\n```", ADD, "add"),
    "entities": (f"<pre><code>{html.escape(LESS)}</code></pre>", LESS, "add"),
    "entities in a block": (f"```python\n{html.escape(LESS)}```\n", LESS, "add"),
    "quotes of a word processor": ("```\ndef add(a, b):\n    return a + b if a != ‘x’ else “”\n```",
                                   "def add(a, b):\n    return a + b if a != 'x' else ''\n", "add"),
    "escaped names": ("def add\\_two(a, b):\n    return a \\* b\n",
                      "def add_two(a, b):\n    return a * b\n", "add_two"),
    "tabs and blanks": ("```python\ndef add(a, b):\n\tif a:\n\t    return a\n\treturn b\n```",
                        "def add(a, b):\n    if a:\n        return a\n    return b\n", "add"),
    "a language against the code": (f"```python{ONE}\n```", ONE, "add"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_another_program_is_taken_from_its_shape(name):
    answer, expected, entry_point = OTHERS[name]
    assert_is(extract(answer, entry_point), expected)


@pytest.mark.parametrize("noise", [*SPANS.values(), *WEB.values(), *SESSIONS.values(), f"`{ONE}`"])
def test_a_proper_block_comes_before_any_other_shape(noise):
    for answer in (f"{noise}\n\n```python\n{LOOP}```\n", f"```python\n{LOOP}```\n\n{noise}"):
        found = extract(answer, "add")
        assert found.reason is None
        # A piece that stands as code by itself, without a fence, is a block's equal.
        if noise in (*SPANS.values(), *SESSIONS.values()):
            assert_is(found, LOOP)


@pytest.mark.parametrize(
    "answer",
    [
        "```javascript\nconst add = `add = max`\n```",
        "```julia\nadd = max\n```",
        f"```bash\ncat > add.py <<'EOF'\n{ADD}EOF\n```",
        f"<think>`{ONE}`</think>I cannot.",
        f"<think>\n{USED}\n</think>\nI cannot.",
        "Call `add(1, 2)` or `add`.",
        "1. add the numbers\n2. return them\n",
        '{"add": 1}',
        "- add the numbers\n+ return them\n",
    ],
)
def test_other_languages_thoughts_and_calls_are_still_no_program(answer):
    assert extract(answer, "add").program in ("", answer) and extract(answer, "add").reason


HOSTILE = {
    # beginning, what is repeated, end
    "thoughts in a block": ("```\n", "<think>\n", "\n```\n"),
    "cited ends of a turn": ("x", "'<|im_end|>'", ""),
    "blanks before code": ("x\n", " ", "missing = ("),
    "blanks after a tag": ("missing\n``` a", " ", "b"),
    "blanks before a fence": ("missing\n", " ", "x```"),
    "one long word": ("missing\n(", "a", ""),
    "ends of blocks": ("", "```python\n'''\n(\n```\n", ""),
    "names of other blocks": ("", "```python\nx = 1\n```\n", "```\ndef missing():\n    y\n```"),
    "programs that lack a name": ("", "```python\nprint(y)\n```\n", ""),
    "runs of ticks": ("missing ", "``x```y````z`````", ""),
    "spans": ("missing ", "`x = 1` ", ""),
    "a session": ("missing\n", ">>> x = 1\n", ""),
    "numbers": ("missing\n", "1 | x = 1\n", ""),
    "entities": ("missing\n", "&lt;<pre ", ""),
    "nested JSON": ("", '{"missing": ', ""),
    "scopes": ("missing = ", "lambda: ", "1\n"),
    "diffs": ("missing\n", "@@ -1 +1 @@\n-x\n+missing\n", ""),
    "colours": ("missing\n", "\x1b[1mx\x1b[", ""),
    "pairs": ("</plan>", "<plan><draft>", "missing"),
    "parts of a mark": ("missing", "<a_b_c_d_", ""),
    "ends of tasks": ("missing\n", "'[DONE]\n", ""),
    "keys of YAML": ("missing\n", "a: |\n", ""),
    "strings of three quotes": ("missing\n", '""\"\nx', "'''"),
    "JSON in prose": ("missing\n", '{"a":\n', ""),
    "prompts of a notebook": ("missing\n", "In [1]:\n", ""),
    "prompts of a shell": ("missing\n", "$ x\n", ""),
    "pieces": ("", "```\nmissing(\n```\n", ""),
    "files": ("", "```\nfrom u import x\ndef x(): pass\n```\n", "```\ndef missing(): y\n```"),
    "people": ("missing\n", "User: x\n", ""),
    "changes of one name": ("```\ny = {}\n", "y[0] = 1\n", "```\n```\nmissing = lambda: y\n```"),
}  # fmt: skip


def assert_linear(name, entry_point, size):
    beginning, repeated, end = HOSTILE[name]
    answer = beginning + repeated * ((size - 500) // len(repeated)) + end
    with parsed_characters() as parsed:
        extract(answer, entry_point)
    # Beyond the budget: what a piece lacks, what is a remark, and what is left of the answer.
    assert sum(parsed) <= 2 * budget(len(answer)) + 6 * len(answer)


QUICK = (
    "thoughts in a block",
    "blanks before code",
    "blanks after a tag",
    "programs that lack a name",
)


@pytest.mark.parametrize("name", large_but(QUICK, HOSTILE))
def test_a_hostile_answer_parses_a_number_of_characters_that_is_linear(name):
    assert_linear(name, "missing", 30_000)


@pytest.mark.large
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("entry_point", ["missing", ""])
def test_the_largest_hostile_answer_takes_linear_work(name, entry_point):
    assert_linear(name, entry_point, MAX_CHARS)


class parsed_characters:
    """Context of the lengths of all texts that Python parses, by its own audit event."""

    sizes: list[int] | None = None

    def __enter__(self):
        if not hasattr(type(self), "hooked"):
            type(self).hooked = True
            sys.addaudithook(self.count)
        type(self).sizes = []
        return type(self).sizes

    def __exit__(self, *_):
        type(self).sizes = None

    @classmethod
    def count(cls, event, arguments):
        if event == "compile" and cls.sizes is not None and arguments[0] is not None:
            cls.sizes.append(len(arguments[0]))


def test_a_parser_stops_at_its_budget():
    parser = Parser(100)
    for size in (budget(100) - 10, 5, 100, 5):
        parser.code(f"x = {size:0>{size}}"[:size] if size > 8 else "x = 1")
    assert parser.spent <= budget(100)
    assert parser.code("y = 1 + 222222") is None and parser.code("x = 1") is not None


def test_an_answer_of_a_deep_scope_ends_in_no_error():
    assert extract("missing = " + "lambda: " * 400 + "1", "missing").program
    deep = "f" + "(lambda: " * 150 + "1" + ")" * 150
    assert extract(f"```python\n{deep}\n```\n```python\n{ADD}```", "add").reason is None
    assert extract("x = " + "[" * 5000, "add").reason == NoProgram.NO_CODE
