"""HumanEval (openai/human-eval), the table of HumanEval+ (evalplus/humanevalplus), and the Python
problems of HumanEvalPack and HumanEval-X.

Row: `task_id`, `prompt` (imports, helpers and a signature with its docstring), `entry_point`,
`canonical_solution` (the body, or the whole function), `test` (Python that defines
`check(candidate)`, or assertions that call the function). HumanEval-X has no `entry_point`, but a
`declaration`, whose last function it is. Problems of other languages are left out.

The prompt's imports and helpers are the prelude. `check` is split into its assertions if that is
safe, and called whole otherwise. Assertions whose call appears in the docstring are public.
"""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Mapping
from typing import Any

from engine.problems.formats import assertions, numpy_shim, statements, unjudged
from engine.problems.formats.fields import Fields, RowError
from engine.problems.formats.visible_tests import normalized, shows_call, split_tests
from engine.problems.problem import CodeTest, Problem

FIELDS = ("task_id", "prompt", "declaration", "entry_point", "canonical_solution", "test")
_OF_PYTHON = ("HumanEval", "Python")


def recognises(row: Mapping[str, Any]) -> bool:
    return {"prompt", "test"} <= row.keys() and bool({"entry_point", "declaration"} & row.keys())


def problem(fields: Fields) -> Problem:
    _refuse_other_languages(fields)
    prompt = fields.text("prompt")
    name = _entry_point(fields)
    tests = tests_of(fields.text("test"), name)
    unjudged.refuse("test", [fields.text("test"), *tests], "candidate")
    assertions.refuse_own_objects("test", tests, "candidate", prelude(prompt, name))
    statement = normalized(prompt)
    calls = [assertions.called(code, "candidate") for code in tests]
    shown = [bool(call) and shows_call(statement, name, call) for call in calls]
    public, private = split_tests([CodeTest(code) for code in tests], shown)
    return Problem(
        id=fields.id("task_id", "HumanEval"),
        statement=statements.complete(prompt, name),
        entry_point=name,
        public_tests=public,
        private_tests=private,
        reference=reference_of(prompt, fields),
        prelude=prelude(prompt, name),
    )


def _refuse_other_languages(fields: Fields) -> None:
    """Raises `RowError` for a problem of HumanEvalPack or HumanEval-X in another language, whose
    `task_id` begins with it."""
    task = fields.data.get("task_id")
    language = (
        task.partition("/")[0] if isinstance(task, str) and "declaration" in fields.data else ""
    )
    if language and language not in _OF_PYTHON:
        raise RowError("task_id", task, f"is a problem in {language}; only Python is run")


def _entry_point(fields: Fields) -> str:
    if fields.data.get("entry_point") is not None or "declaration" not in fields.data:
        return fields.text("entry_point")
    declared = fields.text("declaration")
    names = re.findall(r"^(?:async )?def (\w+)", declared, re.MULTILINE)
    if not names:
        raise RowError("declaration", declared, "declares no function, and there is no entry_point")
    return names[-1]


def reference_of(prompt: str, fields: Fields) -> str:
    """Returns the prompt with its solution; empty if the data set withholds it: the prompt alone
    is a program that is wrong."""
    body = fields.text_or_empty("canonical_solution")
    return prompt + body if body.strip() else ""


def prelude(prompt: str, name: str) -> str:
    """Returns the part of the prompt before the requested function."""
    try:
        body = ast.parse(prompt).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        body = assertions.parsed("prompt", f"{prompt.rstrip()}\n    pass\n").body
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            # Lines as the parser counts them: a form feed or U+2028 ends none.
            lines = io.StringIO(prompt, newline=None).readlines()
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            return "".join(lines[: first - 1]).strip()
    raise RowError("prompt", prompt, f"has no function {name}, which entry_point names")


def tests_of(test: str, name: str) -> list[str]:
    """Returns the tests of a text for the function `name`, which they call `candidate`. Raises
    `RowError`."""
    body = numpy_shim.without_numpy(assertions.parsed("test", test).body)
    checks = [n for n in body if isinstance(n, ast.FunctionDef) and n.name == "check"]
    if not checks:
        return _assertions(test, body, name)
    check = checks[-1]
    body = [node for node in body if node not in checks[:-1]]
    parameters = [argument.arg for argument in check.args.args]
    if len(parameters) != 1:
        raise RowError("test", ast.unparse(check.args), "check must take the function, no more")
    callers = _callers_of_check(body)
    around = [node for node in body if node is not check and not _runs_check(node, callers)]
    if parameters != ["candidate"]:
        around += ast.parse(f"{parameters[0]} = candidate").body
    tests = assertions.split([*around, *check.body])
    if tests is None:
        whole = ast.unparse(ast.Module([*around, check], []))
        return [f"{whole}\ncheck(candidate)"]
    if not tests:
        raise RowError("test", test, "asserts nothing; a problem without tests cannot be judged")
    return tests


def _assertions(test: str, body: list[ast.stmt], name: str) -> list[str]:
    """Returns the tests of a text without `check`: assertions that call the function `name`."""
    if any(isinstance(node, ast.ClassDef) for node in body):
        remedy = "tests in a class, as unittest does; only check(candidate) and assertions are run"
        raise RowError("test", test, remedy)
    renamed = [_Renamed(name).visit(node) for node in body]
    tests = assertions.split(renamed)
    if tests is None:
        tests = [ast.unparse(ast.Module(renamed, []))]
    if not any(assertions.called(one, "candidate") for one in tests):
        raise RowError("test", test, f"defines no check(candidate), and asserts nothing of {name}")
    return tests


class _Renamed(ast.NodeTransformer):
    """Transformer that gives the function under test the name that `check` gives it."""

    def __init__(self, name: str):
        self._name = name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        new = "candidate" if node.id == self._name else node.id
        return ast.copy_location(ast.Name(new, node.ctx), node)


def _callers_of_check(body: list[ast.stmt]) -> set[str]:
    """Returns `check` and the functions that call it, by whatever way (`def test_check(): ...`)."""
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    callers = {"check"}
    while more := {n.name for n in functions if n.name not in callers and _calls(n, callers)}:
        callers |= more
    return callers


def _runs_check(node: ast.stmt, callers: set[str]) -> bool:
    """Whether a statement is there to run `check` on the solution, as the sandbox itself does."""
    if isinstance(node, ast.FunctionDef):
        return node.name in callers
    return isinstance(node, ast.Expr | ast.If | ast.Try) and _calls(node, callers)


def _calls(node: ast.AST, names: set[str]) -> bool:
    calls = [inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    return any(isinstance(func, ast.Name) and func.id in names for func in calls)
