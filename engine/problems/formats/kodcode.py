"""KodCode-V1 and its variants: questions with pytest modules.

Row: `question_id` (or `conversation_id`), `question`, `solution`, `test` or `test_code` (a pytest
module with `from solution import f` and functions `test_...`), `test_info` (`function_name`,
`function_declaration`), `style`, `subset`, `gpt_difficulty`.

Each test function is one test. Of pytest, `raises`, `approx` and `mark.parametrize` (all its cases
run) are supported; tests that need more of it, or that import a class, another module's state, or
several functions from the solution, are left out with that reason, as are rows with tests in
classes or coroutines, with set-up functions of pytest, and without any assertion. Of two tests of
one name the later one counts, as in pytest.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from engine.problems.formats import assertions, statements, unjudged
from engine.problems.formats.fields import Fields, RowError
from engine.problems.formats.pytest_shim import PYTEST, without_pytest
from engine.problems.formats.visible_tests import normalized, shows_call, split_tests
from engine.problems.problem import CodeTest, Problem

FIELDS = (
    "question_id", "conversation_id", "question", "solution", "test", "test_code", "test_info",
    "test_entry_point", "style", "subset", "gpt_difficulty",
)  # fmt: skip
_SETUP = ("setup_function", "teardown_function", "setup_module", "teardown_module")


def recognises(row: Mapping[str, Any]) -> bool:
    return "question" in row and bool({"test", "test_code"} & row.keys())


def problem(fields: Fields) -> Problem:
    question, solution = fields.text("question"), fields.text_or_empty("solution")
    field = "test" if fields.data.get("test") else "test_code"
    tree = assertions.parsed(field, fields.text(field))
    imported = _used(tree, _from_solution(field, tree))
    body = _WithoutSolution().visit(tree).body
    local, name = _function(fields, field, imported)
    tests = _tests(field, body, local, name)
    assertions.refuse_redefinition(field, tests, local)
    unjudged.refuse(field, tests, local)
    assertions.refuse_own_objects(field, tests, local)
    statement = normalized(question)
    calls = [assertions.called(test, local) for test in tests]
    shown = [bool(call) and shows_call(statement, name, call) for call in calls]
    public, private = split_tests([CodeTest(test) for test in tests], shown)
    identity = "question_id" if fields.data.get("question_id") else "conversation_id"
    return Problem(
        id=fields.id(identity, "kodcode"),
        statement=statements.function(question, name, statements.signature_of(solution, name)),
        entry_point=name,
        public_tests=public,
        private_tests=private,
        reference=solution,
        tags=fields.tags("style", "subset", "gpt_difficulty"),
    )


def _from_solution(field: str, tree: ast.Module) -> list[ast.ImportFrom]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(name.name == "solution" for name in node.names):
            remedy = "uses the solution as a module; only a function of it can be called"
            raise RowError(field, ast.unparse(node), remedy)
    return [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == "solution"]


def _used(tree: ast.Module, imported: Sequence[ast.ImportFrom]) -> list[ast.ImportFrom]:
    """Returns imports of the names alone that the tests use; all if they use none."""
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {"*"}
    used = [
        ast.ImportFrom(node.module, [alias], node.level)
        for node in imported
        for alias in node.names
        if (alias.asname or alias.name) in read
    ]
    return used or list(imported)


class _WithoutSolution(ast.NodeTransformer):
    """Transformer that removes every `from solution import ...`: the judge defines the name."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node) if node.module == "solution" else node


def _function(fields: Fields, field: str, imported: Sequence[ast.ImportFrom]) -> tuple[str, str]:
    """Returns (name in the tests, name in the solution) of the function under test."""
    aliases = list({(a.name, a.asname): a for node in imported for a in node.names}.values())
    if len(aliases) > 1:
        names = ", ".join(alias.name for alias in aliases)
        raise RowError(field, names, "imports more than one name; only one function can be judged")
    if aliases and aliases[0].name != "*":
        name, local = aliases[0].name, aliases[0].asname or aliases[0].name
    else:
        name = local = _function_from_test_info(fields)
    if not name:
        raise RowError(
            field, None, "imports nothing from solution, and test_info names no function"
        )
    solution = fields.text_or_empty("solution")
    if solution.strip() and not statements.signature_of(solution, name):
        remedy = "is no function at the top of the solution; only functions can be judged"
        raise RowError("solution", name, remedy)
    return local, name


def _function_from_test_info(fields: Fields) -> str:
    info = fields.json("test_info")
    entries = info if isinstance(info, list) else [info]
    names = [entry.get("function_name") for entry in entries if isinstance(entry, dict)]
    return str(names[0]) if names and names[0] else fields.text_or_empty("test_entry_point")


def _tests(field: str, body: Sequence[ast.stmt], local: str, name: str) -> list[str]:
    _refuse_other_tests(field, body)
    every = [n for n in body if isinstance(n, ast.FunctionDef) and n.name.startswith("test")]
    if not every:
        raise RowError(field, None, "defines no function test_...; there is nothing to judge")
    functions = list({one.name: one for one in every}.values())
    outside = [n for n in body if n not in every and not isinstance(n, ast.Pass)]
    setup = without_pytest(field, outside)
    shared = ast.unparse(ast.Module(setup, []))
    alias = "" if local == name else f"{local} = candidate\n"
    used = {local} | assertions.bound_by(ast.Module(setup, []))
    tests = []
    for function in functions:
        arguments = {argument.arg for argument in function.args.args}
        if arguments - _parameters(function):
            remedy = f"{function.name} takes fixtures of pytest, which are not supported here"
            raise RowError(field, ", ".join(sorted(arguments)), remedy)
        code = ast.unparse(ast.Module([*without_pytest(field, [function])], []))
        if _may_fail(function, used):
            tests.append(_test_code(function.name, code, shared, alias))
    if not any(assertions.checks(one) for node in (*functions, *setup) for one in ast.walk(node)):
        raise RowError(field, every[0].name, "asserts nothing, so a wrong program would pass, too")
    if not tests:
        raise RowError(field, every[0].name, f"no test calls {name}; there is nothing to judge")
    return tests


def _test_code(test: str, code: str, shared: str, alias: str) -> str:
    shim = PYTEST if "pytest." in code or "pytest." in shared else ""
    return f"{shim}{alias}{shared}\n{code}\n{test}()\n".lstrip()


def _refuse_other_tests(field: str, body: Sequence[ast.stmt]) -> None:
    """Raises `RowError` for tests and set-up that pytest would run and this module does not."""
    for node in body:
        if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test"):
            raise RowError(field, node.name, "is a coroutine; only plain test functions are run")
        if isinstance(node, ast.FunctionDef) and node.name in _SETUP:
            raise RowError(field, node.name, "is set-up of pytest, which is not supported here")
        inner = node.body if isinstance(node, ast.ClassDef) else []
        kinds = ast.FunctionDef | ast.AsyncFunctionDef
        if any(isinstance(one, kinds) and one.name.startswith("test") for one in inner):
            remedy = "is a class of tests; only plain test functions are run"
            raise RowError(field, node.name, remedy)  # type: ignore[attr-defined]
    for inner in (one for node in body for one in ast.walk(node)):
        text = inner.value if isinstance(inner, ast.Constant) else None
        if isinstance(text, str) and re.fullmatch(r"solution\.\w+(\.\w+)*", text):
            remedy = "uses the solution as a module; only a function of it can be called"
            raise RowError(field, text, remedy)


def _may_fail(function: ast.FunctionDef, used: set[str]) -> bool:
    """Returns whether a test asserts anything or reads one of the names `used` (the function under
    test, helpers), for a case at least."""
    cases = [
        one.args[1] for one in function.decorator_list if isinstance(one, ast.Call) and one.args[1:]
    ]
    if any(isinstance(one, ast.List | ast.Tuple) and not one.elts for one in cases):
        return False
    return any(
        assertions.checks(inner) or (isinstance(inner, ast.Name) and inner.id in used)
        for inner in ast.walk(function)
    )


def _parameters(function: ast.FunctionDef) -> set[str]:
    """Returns the arguments that `pytest.mark.parametrize` passes."""
    names: set[str] = set()
    for node in function.decorator_list:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.parametrize":
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                names |= {name.strip() for name in first.value.split(",")}
            elif isinstance(first, ast.List | ast.Tuple):
                names |= {str(n.value) for n in first.elts if isinstance(n, ast.Constant)}
    return names
