"""HumanEval (openai/human-eval) and the table of HumanEval+ (evalplus/humanevalplus).

Row: `task_id`, `prompt` (imports, helpers and a signature with its docstring), `entry_point`,
`canonical_solution` (the body), `test` (Python that defines `check(candidate)`).

The prompt's imports and helpers are the prelude. `check` is split into its assertions if that is
safe, and called whole otherwise. Assertions whose call appears in the docstring are public.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Mapping
from typing import Any

from engine.problems.formats import assertions, numpy_shim, statements, unjudged
from engine.problems.formats.fields import Fields, RowError
from engine.problems.formats.visible_tests import normalized, shows_call, split_tests
from engine.problems.problem import CodeTest, Problem

FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")


def recognises(row: Mapping[str, Any]) -> bool:
    return {"prompt", "entry_point", "canonical_solution", "test"} <= row.keys()


def problem(fields: Fields) -> Problem:
    prompt, name = fields.text("prompt"), fields.text("entry_point")
    tests = _tests(fields.text("test"))
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


def _tests(test: str) -> list[str]:
    body = numpy_shim.without_numpy(assertions.parsed("test", test).body)
    check = next((n for n in body if isinstance(n, ast.FunctionDef) and n.name == "check"), None)
    if check is None:
        raise RowError("test", test, "defines no check(candidate)")
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
