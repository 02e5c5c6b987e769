"""Statements of problems: the data set's text, followed by the kind of the requested program.

Invariant: every statement ends with the name of the function, or with the use of stdin and stdout,
so that the tests can judge an answer.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence


def complete(prompt: str, name: str) -> str:
    """Returns the statement of a prompt that is code: a signature with a docstring."""
    return (
        f"Complete the Python function `{name}`. Answer with the whole program, including the "
        f"imports it needs.\n\n```python\n{prompt.strip()}\n```"
    )


def function(text: str, name: str, signature: str = "", examples: Sequence[str] = ()) -> str:
    """Returns the statement of a text that describes a function; `examples` are assertions that it
    must satisfy."""
    parts = [text.strip(), f"Write a Python function `{signature or name}`."]
    if examples:
        parts.append("It must satisfy:\n```python\n" + "\n".join(examples) + "\n```")
    return "\n\n".join(parts)


def starter(text: str, code: str, entry_point: str) -> str:
    """Returns the statement of a text with starter code; `entry_point` is a function or
    `Class.method`."""
    what = "method" if "." in entry_point else "function"
    task = f"Write the Python {what} `{entry_point}`"
    if not code.strip():
        return f"{text.strip()}\n\n{task}."
    return f"{text.strip()}\n\n{task}, beginning with this code:\n```python\n{code.rstrip()}\n```"


def whole_program(text: str) -> str:
    """Returns the statement of a text that describes input and output."""
    return (
        f"{text.strip()}\n\nWrite a Python program that reads the input from stdin and prints the "
        "output to stdout."
    )


def signature_of(program: str, name: str) -> str:
    """Returns `name(arguments)` as the program's top level defines it; empty if it does not."""
    try:
        body = ast.parse(program).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return f"{name}({ast.unparse(node.args)})"
    return ""
