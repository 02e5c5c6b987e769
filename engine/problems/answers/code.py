"""Python code in an answer: what it defines, reads and prints, and what it lacks.

A piece of code is parsed, never run.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

SOURCE = "<answer>"
_ALWAYS = frozenset(dir(builtins)) | {
    "__name__", "__file__", "__doc__", "__annotations__", "__builtins__", "__spec__",
}  # fmt: skip
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES = (
    *_DEFINITIONS, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_READERS = frozenset({"input", "raw_input", "stdin", "fileinput"})
_PRINTERS = frozenset({"print", "stdout"})

# Warnings about invalid escapes in a model's program do not belong in our log.
warnings.filterwarnings("ignore", module=re.escape(SOURCE))


class Grade(IntEnum):
    """How much a piece of code is what a problem needs."""

    NONE = 0
    PART = 1
    """A stub, an import or an alias of the entry point; prints without reading input, or only
    defines what does both."""
    WHOLE = 2
    """Defines the entry point; reads input and prints."""


def parsed(text: str) -> ast.Module | None:
    """Returns the syntax tree of a Python module; None if it does not parse within the parser's
    limits."""
    try:
        return ast.parse(text, filename=SOURCE)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


@dataclass(frozen=True)
class Code:
    """A piece of code that parses."""

    text: str
    tree: ast.Module

    @classmethod
    def of(cls, text: str) -> Code | None:
        """Returns the code of a text; None if it does not parse or is empty."""
        if not text.strip() or (tree := parsed(text)) is None or not tree.body:
            return None
        return cls(text, tree)

    def grade(self, entry_point: str) -> Grade:
        """Returns how far it defines `entry_point`, a function `name` or a method `Class.name`; if
        that is empty, how far it is a program that reads input and prints."""
        if not entry_point:
            return self._grade_of_program
        owner, _, name = entry_point.rpartition(".")
        own = self._own_functions
        grades = [_grade(node, owner, name, own) for node in _statements(self.tree.body)]
        return max(grades, default=Grade.NONE)

    @cached_property
    def _own_functions(self) -> frozenset[str]:
        """Names of the functions and classes that its top level defines."""
        nodes = _statements(self.tree.body)
        return frozenset(
            name
            for node in nodes
            for name in ([node.name] if isinstance(node, _DEFINITIONS) else _lambda_names(node))
        )

    @cached_property
    def _grade_of_program(self) -> Grade:
        names = set(_used_names(self.tree))
        if not names & _PRINTERS:
            return Grade.NONE
        reads = names & _READERS and not any(map(_replaces_stdin, ast.walk(self.tree)))
        return Grade.WHOLE if reads and self._runs else Grade.PART

    @property
    def _runs(self) -> bool:
        """Whether it does more than define and import."""
        idle = (*_DEFINITIONS, ast.Import, ast.ImportFrom)
        return any(not isinstance(node, idle) for node in self.tree.body if not _is_text(node))

    @property
    def defines_functions(self) -> bool:
        """Whether it defines a function or class that is no test."""
        return any(
            isinstance(node, _DEFINITIONS) and not re.match(r"[Tt]est|check$|main$", node.name)
            for node in _statements(self.tree.body)
        )

    @property
    def is_expression(self) -> bool:
        """Whether it does nothing: sample output, JSON, `O(1)`."""
        return all(isinstance(node, ast.Expr) for node in self.tree.body) and not self.bound

    @cached_property
    def bound(self) -> frozenset[str]:
        """Names that its top level binds."""
        return frozenset(name for node in self.tree.body for name in _bound_names(node))

    @cached_property
    def missing(self) -> frozenset[str]:
        """Names that it uses and neither binds nor has from Python itself."""
        try:
            table = symtable.symtable(self.text, SOURCE, "exec")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return frozenset()
        return frozenset(_global_names(table)) - self.bound - _ALWAYS

    def statements_of(self, name: str, with_values: bool) -> list[ast.stmt]:
        """Returns the top-level statements that define a name, or change its value; without
        `with_values` only imports, functions and classes."""
        nodes = self._statements_by_name.get(name, [])
        if with_values:
            return nodes
        kinds = (ast.Import, ast.ImportFrom, *_DEFINITIONS)
        return [node for node in nodes if isinstance(node, kinds)]

    @cached_property
    def _statements_by_name(self) -> dict[str, list[ast.stmt]]:
        found: dict[str, list[ast.stmt]] = {}
        for node in self.tree.body:
            for name in {*_bound_names(node), *_changed_names(node)}:
                found.setdefault(name, []).append(node)
        return found

    def source_of(self, nodes: Iterable[ast.stmt]) -> str:
        """Returns the lines of some of its statements."""
        rows = {row for node in nodes for row in range(first_line(node), last_line(node) + 1)}
        return "".join(f"{self._lines[row - 1]}\n" for row in sorted(rows))

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")


def without_remarks(code: Code) -> Code | None:
    """Returns code without prose at its beginning and end that happens to parse, such as `O(n)`:
    bare expressions and annotations whose names nothing defines."""
    body, known = code.tree.body, code.bound | _ALWAYS
    start, end = 0, len(body)
    while end > start and _is_remark(body[end - 1], known):
        end -= 1
    while start < end and _is_remark(body[start], known):
        start += 1
    if (start, end) == (0, len(body)):
        return code
    if start == end:
        return None
    first = first_line(body[start]) - 1 if start else 0
    lines = code.text.split("\n")[first : last_line(body[end - 1])]
    return Code.of("\n".join(lines) + "\n")


def may_define(text: str, entry_point: str | None) -> bool:
    """Returns whether code in a text may define the entry point, as `Code.grade` has it: a quick
    look at its words, which spares most prose the search."""
    if not entry_point:
        words = ("def ", "class ") if entry_point is None else _PRINTERS | {"write"}
        return any(word in text for word in words)
    owner, _, name = entry_point.rpartition(".")
    return re.search(rf"\b{re.escape(owner or name)}\b", text) is not None


def _statements(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Returns the statements of a module's top level, also those within `if`, `try` and `with`."""
    found: list[ast.stmt] = []
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt):
            found.append(node)
        if not isinstance(node, _DEFINITIONS):
            for name in ("body", "orelse", "finalbody", "handlers"):
                inner = getattr(node, name, ())
                stack += inner if isinstance(inner, list) else ()
    return found


def _grade(node: ast.stmt, owner: str, name: str, own: frozenset[str]) -> Grade:
    target = owner or name
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if owner or node.name != target:
            return Grade.NONE
        return Grade.PART if _is_stub(node.body) else Grade.WHOLE
    if isinstance(node, ast.ClassDef):
        if node.name != target:
            return Grade.NONE
        methods = [_grade(inner, "", name, own) for inner in node.body]
        inherited = Grade.PART if node.bases else Grade.NONE
        return max(methods, default=inherited) or inherited if owner else Grade.WHOLE
    if isinstance(node, ast.Import | ast.ImportFrom):
        bound = [alias.asname or alias.name for alias in node.names]
        return Grade.PART if target in bound else Grade.NONE
    if owner and name in _attributes_set(node, owner):
        return Grade.WHOLE
    if target in _lambda_names(node):
        return Grade.NONE if owner else Grade.WHOLE
    if isinstance(node, ast.Assign | ast.AnnAssign) and target in _bound_names(node):
        if not owner and _is_made_of(node.value, own - {target}):
            return Grade.WHOLE
        callable_ = isinstance(node.value, ast.Name | ast.Attribute | ast.Call)
        return Grade.PART if callable_ else Grade.NONE
    return Grade.NONE


def _lambda_names(node: ast.stmt) -> Iterator[str]:
    """Yields the names that a statement binds to a lambda, also within an expression (`:=`) and in
    a tuple; not those of statements inside of it."""
    stack: list[ast.AST] = [node]
    while stack:
        inner = stack.pop()
        if not isinstance(inner, _SCOPES):
            stack += (one for one in ast.iter_child_nodes(inner) if not isinstance(one, ast.stmt))
        if not isinstance(inner, ast.NamedExpr | ast.AnnAssign | ast.Assign) or not inner.value:
            continue
        for target in inner.targets if isinstance(inner, ast.Assign) else (inner.target,):
            yield from _lambda_targets(target, inner.value)


def _lambda_targets(target: ast.expr, value: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name) and isinstance(value, ast.Lambda):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for one, part in zip(target.elts, value.elts, strict=False):
            yield from _lambda_targets(one, part)


def _attributes_set(node: ast.stmt, owner: str) -> Iterator[str]:
    """Yields the attributes of a class that a statement sets: `Solution.add = add`."""
    for target in node.targets if isinstance(node, ast.Assign) else ():
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            yield from (target.attr,) if target.value.id == owner else ()


def _is_made_of(value: ast.expr | None, own: frozenset[str]) -> bool:
    """Returns whether a value is one of the code's own functions, or made of one alone or of a
    lambda: `fast`, `cache(fast)`, `partial(fast, 2)`, `cache(lambda n: n)`."""
    if isinstance(value, ast.Name):
        return value.id in own
    if not isinstance(value, ast.Call) or not value.args:
        return False
    first = value.args[0]
    is_alone = len(value.args) == 1 and not value.keywords
    is_partial = getattr(value.func, "id", getattr(value.func, "attr", "")) == "partial"
    is_function = isinstance(first, ast.Lambda) or _is_made_of(first, own)
    return (is_alone or is_partial) and is_function


def _is_stub(body: Sequence[ast.stmt]) -> bool:
    """Returns whether a function does nothing: `pass`, `...`, `return ...`, a docstring."""
    return all(
        isinstance(node, ast.Pass)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.Return) and _is_ellipsis(node.value))
        or (isinstance(node, ast.Raise) and "NotImplementedError" in _loaded_names(node))
        for node in body
    )


def _is_ellipsis(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _used_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            continue
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
            if _is_of_os(node, "read"):
                yield "stdin"
            elif _is_of_os(node, "write"):
                yield "stdout"
        elif isinstance(node, ast.Call | ast.Constant) and _is_stdin(node):
            yield "stdin"
        elif isinstance(node, ast.ImportFrom) and node.module == "sys":
            yield from (alias.name for alias in node.names)


def _is_of_os(node: ast.Attribute, name: str) -> bool:
    return node.attr == name and isinstance(node.value, ast.Name) and node.value.id == "os"


def _is_stdin(node: ast.Call | ast.Constant) -> bool:
    """Returns whether a node is the path of stdin, or `open(0)`."""
    if isinstance(node, ast.Constant):
        return node.value in ("/dev/stdin", "/dev/fd/0")
    first = node.args[0] if node.args else None
    opens = isinstance(node.func, ast.Name) and node.func.id == "open"
    return opens and isinstance(first, ast.Constant) and first.value == 0


def _replaces_stdin(node: ast.AST) -> bool:
    """Returns whether a node gives the program a text of its own in place of its input."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return False
    if not any(isinstance(one, ast.Attribute) and one.attr == "stdin" for one in node.targets):
        return False
    made = node.value.func
    name = made.attr if isinstance(made, ast.Attribute) else getattr(made, "id", "")
    return name == "StringIO" and all(isinstance(one, ast.Constant) for one in node.value.args)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _bound_names(node: ast.stmt) -> Iterator[str]:
    """Yields the names that a top-level statement binds in its module."""
    for inner in _of_module(node):
        if isinstance(inner, _DEFINITIONS):
            yield inner.name
        elif isinstance(inner, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in inner.names)
        elif isinstance(inner, ast.Name):
            if not isinstance(inner.ctx, ast.Load):
                yield inner.id
        elif isinstance(inner, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and inner.name:
            yield inner.name


def _changed_names(node: ast.stmt) -> Iterator[str]:
    """Yields the names whose values a top-level statement changes: by an item (`table[0] = 1`), an
    attribute, or a method (`table.append(1)`)."""
    for inner in _of_module(node):
        if isinstance(inner, ast.Subscript | ast.Attribute):
            if not isinstance(inner.ctx, ast.Load):
                yield from _root(inner)
        elif isinstance(inner, ast.Expr) and isinstance(call := inner.value, ast.Call):
            yield from _root(call.func) if isinstance(call.func, ast.Attribute) else ()


def _of_module(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a statement that belong to its module's own scope."""
    stack = [node]
    while stack:
        inner = stack.pop()
        yield inner
        if not isinstance(inner, _SCOPES):
            stack += ast.iter_child_nodes(inner)


def _root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _global_names(module: symtable.SymbolTable) -> Iterator[str]:
    # No recursion: scopes nest deeper than Python calls.
    tables = [module]
    while tables:
        table = tables.pop()
        for symbol in table.get_symbols():
            used = symbol.is_referenced() or symbol.is_declared_global()  # `global n; n += 1`
            if used and (table is module or symbol.is_global()):
                yield symbol.get_name()
        tables += table.get_children()


def first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", ())
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _is_remark(node: ast.stmt, known: frozenset[str]) -> bool:
    if isinstance(node, ast.Expr) and next(_bound_names(node), None):
        return False  # `(f := lambda x: x)`
    if not isinstance(node, ast.Expr) and not (
        isinstance(node, ast.AnnAssign) and node.value is None
    ):
        return False
    calls = {
        inner.func.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name)
    }
    return calls.isdisjoint(known) and not known.issuperset(_loaded_names(node))


def _loaded_names(node: ast.AST) -> set[str]:
    return {
        inner.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)
    }
