"""Can a call of a program leave anything behind that a later call might find?

Programs of plain functions cannot: then a call in a batch is a call alone, whatever came before
it, and there is nothing that a run in a fresh process could do otherwise. `is_stateless` shows it
from the text, for the part of Python in which it is certain; what it does not know has state.

The argument: after a call, only what can be reached from the module's names, from built-ins and
from imported modules is left. Here these are functions, classes of Python's own, and constants
that cannot be changed. There is no name, no attribute and no import by which a call could reach
anything else, no statement that stores into an attribute or a name of the module, and no way to
keep a frame. What hangs on time, memory or the end of the process is not covered: such tests are
run again all the same.
"""

from __future__ import annotations

import ast
import builtins

MAX_CHARS = 10_000

_MODULES = {"math", "cmath", "itertools", "heapq", "bisect"}
"""Modules of functions, from which no other module can be reached."""
_FROM = {
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "functools": {"reduce", "cmp_to_key"},
    "typing": {"Any", "Dict", "List", "Optional", "Set", "Tuple", "Union"},
}
_ERRORS = {
    "ArithmeticError", "AssertionError", "AttributeError", "IndexError", "KeyError", "LookupError",
    "OverflowError", "StopIteration", "TypeError", "ValueError", "ZeroDivisionError",
}  # fmt: skip
_BUILTINS = _ERRORS | {
    "abs", "all", "any", "bin", "bool", "bytearray", "bytes", "chr", "complex", "dict", "divmod",
    "enumerate", "filter", "float", "format", "frozenset", "hex", "int", "isinstance", "iter",
    "len", "list", "map", "max", "min", "next", "oct", "ord", "pow", "print", "range", "reversed",
    "round", "set", "slice", "sorted", "str", "sum", "tuple", "zip",
}  # fmt: skip
_STATEMENTS = (
    ast.FunctionDef, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While,
    ast.If, ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.Raise, ast.Assert, ast.Try, ast.Delete,
    ast.Nonlocal,
)  # fmt: skip
_NOT_EXPRESSIONS = (ast.Yield, ast.YieldFrom, ast.Await)
_NOT_ATTRIBUTES = ("_", "gi_", "cr_", "ag_", "tb_", "f_", "co_")
"""Beginnings of names that lead from a value to frames, namespaces and code."""


def is_stateless(prelude: str, program: str) -> bool:
    """Whether no call of the program's functions can change what another call does."""
    if len(prelude) + len(program) > MAX_CHARS:
        return False
    try:
        body = [
            statement
            for text in (prelude, program)
            for statement in ast.parse(text.removeprefix("\ufeff")).body
        ]
        return _Module(body).is_stateless()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


class _Module:
    def __init__(self, body: list[ast.stmt]):
        self.body = body
        # A name that is bound anywhere may be used everywhere: scopes are not followed.
        self.known: set[str] = set()
        for node in ast.walk(ast.Module(body, [])):
            match node:
                case ast.FunctionDef(name=name) | ast.arg(arg=name):
                    self.known.add(name)
                case ast.Name(id=name, ctx=ast.Store()):
                    self.known.add(name)
                case ast.Import(names=names) | ast.ImportFrom(names=names):
                    self.known |= {alias.asname or alias.name for alias in names}
                case ast.ExceptHandler(name=str(name)):
                    self.known.add(name)

    def is_stateless(self) -> bool:
        hidden = {name for name in self.known if name.startswith("_") and name != "_"}
        hidden |= self.known & (set(dir(builtins)) - _BUILTINS)
        self.known |= _BUILTINS
        return not hidden and all(self._outside(node) for node in self.body)

    def _outside(self, node: ast.stmt) -> bool:
        """A statement of the module: it makes functions and constants, and calls nothing."""
        match node:
            case ast.Import(names=names):
                return all(alias.name in _MODULES for alias in names)
            case ast.ImportFrom(module=module, names=names, level=0):
                return all(alias.name in _FROM.get(module or "", ()) for alias in names)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return True
            case ast.Assign(targets=[ast.Name()], value=value):
                return _is_constant(value)
            case ast.FunctionDef():
                return self._inside(node)
        return False

    def _inside(self, node: ast.AST) -> bool:
        """A function, or a part of one."""
        if isinstance(node, ast.stmt) and not isinstance(node, _STATEMENTS):
            return False
        if isinstance(node, _NOT_EXPRESSIONS):
            return False
        match node:
            case ast.FunctionDef(decorator_list=decorators, args=arguments):
                values = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
                if decorators or not all(_is_constant(value) for value in values):
                    return False
            case ast.Lambda(args=arguments):
                values = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
                if not all(_is_constant(v) or isinstance(v, ast.Name) for v in values):
                    return False
            case ast.Attribute(attr=name, ctx=context):
                if name.startswith(_NOT_ATTRIBUTES) or not isinstance(context, ast.Load):
                    return False
            case ast.Try(finalbody=[_, *_]):  # it may hide that memory ran out
                return False
            case ast.Name(id=name):
                if name not in self.known:
                    return False
            case ast.ExceptHandler(type=kind):
                kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
                if not all(isinstance(k, ast.Name) and k.id in _ERRORS for k in kinds):
                    return False
        return all(self._inside(child) for child in ast.iter_child_nodes(node))


def _is_constant(node: ast.expr) -> bool:
    """A value that nobody can change."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand) | ast.Starred(value=operand):
            return _is_constant(operand)
        case ast.BinOp(left=left, right=right):
            return _is_constant(left) and _is_constant(right)
        case ast.Tuple(elts=parts):
            return all(_is_constant(part) for part in parts)
    return False
