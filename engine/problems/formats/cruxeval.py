"""CRUXEval (facebookresearch/cruxeval): functions with one input and the resulting output.

Row: `code` (defines `f`), `input` (the arguments, as Python), `output` (a Python literal), `id`.

As a problem it is the prediction of an output: the statement shows the function and the input, and
the requested program must return the same. The function itself is the reference. The only test is
both public and private. It is strict: the output must have its type in Python.

Inputs that are not plain values (a lambda, a range, a variable of the code) cannot be sent to the
program's process. For these the prelude defines the variables and a function `example` that makes
the call, and the test calls `example`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from engine.problems.formats import assertions, statements
from engine.problems.formats.fields import Fields, RowError
from engine.problems.problem import CallTest, Problem
from engine.sandbox.guest.literals import LiteralError, from_literal

FIELDS = ("code", "input", "output", "id")
NAME, EXAMPLE = "f", "example"


def recognises(row: Mapping[str, Any]) -> bool:
    return {"code", "input", "output"} <= row.keys()


def problem(fields: Fields) -> Problem:
    code, output = fields.text("code"), fields.text("output")
    given = fields.text_or_empty("input")
    arguments = _literals(given)
    test = CallTest(arguments or (), _literal(output))
    text = (
        f"What does this function return for `{NAME}({given})`?\n\n```python\n{code.rstrip()}\n```"
    )
    question = statements.function(text, NAME, statements.signature_of(code, NAME))
    return Problem(
        id=fields.id("id", "cruxeval"),
        statement=f"{question} It must return the same.",
        entry_point=EXAMPLE if arguments is None else NAME,
        public_tests=(test,),
        private_tests=(test,),
        reference=code,
        prelude=_prelude(code, given) if arguments is None else "",
    )


def _literals(arguments: str) -> tuple[Any, ...] | None:
    """Returns the arguments as plain values; None if one of them is not plain."""
    if not arguments.strip():
        return ()
    try:
        return from_literal(f"({arguments.strip().rstrip(',')},)")
    except LiteralError:
        return None


def _literal(output: str) -> Any:
    try:
        return from_literal(output)
    except LiteralError as error:
        raise RowError("output", output, f"must be one Python literal: {error}") from None


def _prelude(code: str, arguments: str) -> str:
    variables = [n for n in assertions.parsed("code", code).body if isinstance(n, ast.Assign)]
    call = f"def {EXAMPLE}():\n    return {NAME}({arguments})"
    assertions.parsed("input", call)
    return "\n".join([*map(ast.unparse, variables), call])
