"""Tests that need the program in their own process: they expect it to change its arguments, pass a
function to it, call what it returns, or capture and replace what it prints, reads and calls.

A judge runs in another process than the program; only plain values go from one to the other.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from engine.problems.formats.assertions import parsed
from engine.problems.formats.fields import RowError

_PATCH = re.compile(r"(?:\w+\.)*patch(?:\.(?:object|dict|multiple))?|(?:monkeypatch|mocker)\.\w+")
_CAPTURES = frozenset({"redirect_stdout", "redirect_stderr", "capsys", "capfd"})
_STREAMS = frozenset({"stdin", "stdout", "stderr"})


def refuse(field: str, tests: Sequence[str], name: str) -> None:
    """Raises `RowError` if a test of the function `name` needs the program in its own process."""
    for test in tests:
        tree = parsed(field, test)
        reason = _capture(tree, name) or _passed_function(tree, name) or _call_of_result(tree, name)
        if reason:
            raise RowError(field, test, f"{reason}; only plain values are judged")
        if reason := _change_in_place(tree, name):
            raise RowError(field, test, f"{reason}; only results are judged")


def _capture(tree: ast.Module, name: str) -> str:
    own = {name} | {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        word = getattr(node, "id", getattr(node, "attr", ""))
        if word in _CAPTURES or (word in _STREAMS and _is_set(node)):
            return f"captures what the program prints or reads ({word})"
        func = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if func not in own and _PATCH.fullmatch(func):
            return f"replaces what the program calls ({func})"
    return ""


def _is_set(node: ast.AST) -> bool:
    """Returns whether a node is `sys.stdout` as the target of an assignment."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
        return False
    return isinstance(node.value, ast.Name) and node.value.id == "sys"


def _passed_function(tree: ast.Module, name: str) -> str:
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    bound = {node.id for node in ast.walk(tree) if _is_name(node, ast.Store)}
    for call in _calls(tree, name):
        for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
            if isinstance(argument, ast.Lambda):
                return f"passes a lambda to {name}"
            if not isinstance(argument, ast.Name) or argument.id in bound:
                continue
            value = getattr(builtins, argument.id, None)
            if argument.id in own or (callable(value) and not isinstance(value, type)):
                return f"passes the function {argument.id} to {name}"
    return ""


def _call_of_result(tree: ast.Module, name: str) -> str:
    results = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_call(node.value, name)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        func = node.func if isinstance(node, ast.Call) else None
        if _is_call(func, name) or (isinstance(func, ast.Name) and func.id in results):
            return f"calls what {name} returns"
    return ""


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if _is_call(node, name))


def _is_call(node: ast.AST | None, name: str) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _is_name(node: ast.AST, context: type[ast.expr_context]) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, context)


def _change_in_place(tree: ast.Module, name: str) -> str:
    """Returns why a test needs the arguments that `name` got themselves: a call of whose result
    nothing is used but that it is None, and an assertion about a variable that was passed; a
    variable that changes from one display (`[2, 1]`) to another; or one that is what was returned.
    """
    if variable := _identical(tree, name):
        return f"expects {name} to return its argument {variable} itself"
    variable = _changed_display(tree, name) or _changed(tree, name)
    return f"expects {name} to change its argument {variable}" if variable else ""


def _changed(tree: ast.Module, name: str) -> str:
    read = {node.id for node in ast.walk(tree) if _is_name(node, ast.Load)}
    calls = [call for node in ast.walk(tree) for call in _unused_calls(node, name, read)]
    passed = {v.id for call in calls for v in ast.walk(call) if _is_name(v, ast.Load)} - {name}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assert | ast.Return):
            continue
        within = list(_calls(node, name))
        if any(call not in calls for call in within):
            continue
        own = {id(inner) for call in within for inner in ast.walk(call)}
        names = (inner for inner in ast.walk(node) if _is_name(inner, ast.Load))
        compared = {inner.id for inner in names if id(inner) not in own}
        if variable := min(passed & compared, default=""):
            return variable
    return ""


def _unused_calls(node: ast.AST, name: str, read: set[str]) -> list[ast.AST]:
    """Returns the call of `name` that a node makes without a use of its result; `read` holds the
    names that the test reads."""
    if isinstance(node, ast.Expr) and _is_call(node.value, name):
        return [node.value]
    if isinstance(node, ast.Assign) and _is_call(node.value, name):
        targets = [one.id for one in node.targets if isinstance(one, ast.Name)]
        used = len(targets) < len(node.targets) or not read.isdisjoint(targets)
        return [] if used else [node.value]
    if isinstance(node, ast.Compare) and _is_call(node.left, name):
        nothing = [isinstance(one, ast.Constant) and one.value is None for one in node.comparators]
        return [node.left] if all(nothing) else []
    return []


def _identical(tree: ast.Module, name: str) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is):
            sides = node.left, node.comparators[0]
            for call, other in (sides, sides[::-1]):
                if isinstance(other, ast.Name) and other.id in _passed(call, name):
                    return other.id
    return ""


def _changed_display(tree: ast.Module, name: str) -> str:
    stores = Counter(node.id for node in ast.walk(tree) if _is_name(node, ast.Store))
    made = {
        target.id: ast.dump(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, _DISPLAYS)
        for target in node.targets
        if isinstance(target, ast.Name) and stores[target.id] == 1
    }
    passed = {one for call in _calls(tree, name) for one in _passed(call, name)} & made.keys()
    for node in ast.walk(tree) if passed else ():
        compared = node.test if isinstance(node, ast.Assert) else None
        if not isinstance(compared, ast.Compare) or [type(op) for op in compared.ops] != [ast.Eq]:
            continue
        variable, other = compared.left, compared.comparators[0]
        if not isinstance(variable, ast.Name) or variable.id not in passed:
            continue
        if isinstance(other, _DISPLAYS) and ast.dump(other) != made[variable.id]:
            return variable.id
    return ""


_DISPLAYS = (ast.List, ast.Dict, ast.Set)


def _passed(node: ast.AST, name: str) -> set[str]:
    """Returns the variables that a call of `name` passes as they are; empty for other nodes."""
    if not _is_call(node, name):
        return set()
    return {one.id for one in node.args if isinstance(one, ast.Name)}
