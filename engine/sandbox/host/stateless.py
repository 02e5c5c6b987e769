"""Static proof that no call of a program leaves state behind that a later call could observe.

Programs of plain functions leave none: a call in a batch then behaves like a call alone, whatever
came before it, and a run in a fresh process could not differ. `is_stateless` proves it from the
text, for the part of Python in which the proof is certain; everything else counts as stateful.

The argument: after a call, only what is reachable from the module's names, from built-ins and
from imported modules is left. Here these are functions, classes, and immutable constants; an
object does not outlive the call that made it. There is no name, no attribute and no import by
which a call could reach anything else, no statement that stores into a name of the module or into
an attribute other than one of `self`, which is always an object and never a class, and no way to
keep a frame. Caches are left, of compiled patterns, codecs and generic types. What they return is
equal whether it was cached or not, so no comparison by identity is allowed, except with None, True,
False and `...`; generic types, some of which are only nearly equal, may stand in annotations,
whose values a call cannot get at. What depends on time, memory or the end of the process is not
covered: such tests run again in any case.

Invariant: syntax, names, modules and attributes are those of lists; what is on no list is stateful.
"""

from __future__ import annotations

import ast
import builtins
import re
import string
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Collection
from functools import lru_cache
from types import EllipsisType, NoneType
from typing import TypeGuard

MAX_CHARS = 10_000
_NOT_READABLE = (SyntaxError, ValueError, RecursionError, MemoryError)

_MODULES = {
    "math": None, "cmath": None, "itertools": None, "heapq": None, "bisect": None,
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "functools": {"reduce", "cmp_to_key"},
    "re": {"compile", "escape", "findall", "finditer", "fullmatch", "match", "search", "split",
           "sub"},
    "string": {"ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "punctuation"},
}  # fmt: skip
"""Names that a program may use of each module; None: all but hidden names. From none of them is
another module reachable. Other modules may be imported, but none of their names may be used."""
_GENERIC_TYPES = {
    "Any", "Callable", "Counter", "DefaultDict", "Deque", "Dict", "FrozenSet", "Generator",
    "Hashable", "Iterable", "Iterator", "List", "Literal", "Mapping", "MutableMapping", "NoReturn",
    "Optional", "OrderedDict", "Sequence", "Set", "Text", "Tuple", "Type", "Union",
}  # fmt: skip
"""Names of `typing` that a program may use in annotations, and nowhere else."""
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
_ATTRIBUTES = {"args", "value", "from_iterable"}.union(
    name
    for kind in (
        str, bytes, bytearray, list, tuple, dict, set, frozenset, int, float, complex, range, slice,
        Counter, OrderedDict, defaultdict, deque, re.Pattern, re.Match,
    )
    for name in dir(kind)
)  # fmt: skip
"""Attributes of the values that a program can have, and of exceptions and `itertools.chain`."""
_OTHER_BUILTINS = (frozenset(dir(builtins)) | {"exit", "quit"}) - _BUILTINS
_BINDING = frozenset({
    ast.FunctionDef, ast.ClassDef, ast.Name, ast.ExceptHandler, ast.Import, ast.ImportFrom,
    ast.Attribute,
})  # fmt: skip
_BARE = frozenset(
    kind
    for base in (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
    for kind in base.__subclasses__()
)
"""Nodes without children, such as contexts and operators: half of all nodes."""
_CERTAIN = frozenset({
    ast.Return, ast.Assign, ast.AugAssign, ast.For, ast.While, ast.If, ast.Expr,
    ast.Pass, ast.Break, ast.Continue, ast.Raise, ast.Assert, ast.Delete, ast.Nonlocal, ast.BoolOp,
    ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp, ast.JoinedStr, ast.FormattedValue, ast.Constant, ast.Subscript,
    ast.Starred, ast.List, ast.Tuple, ast.Slice, ast.comprehension, ast.keyword, ast.arguments,
})  # fmt: skip
"""Nodes that are stateless if all their parts are."""
_CONDITIONAL = frozenset({
    ast.Attribute, ast.Call, ast.Compare, ast.ExceptHandler, ast.Lambda, ast.Try,
})  # fmt: skip
"""Nodes that are so on a condition. Not NamedExpr: in an annotation, it would bind a name of the
module to any value."""
_NOT_ATTRIBUTES = ("_", "gi_", "cr_", "ag_", "tb_", "f_", "co_")
"""Prefixes of attributes that lead from a value to frames, namespaces and code."""


def is_stateless(prelude: str, program: str) -> bool:
    """Whether no call of the program's functions can change the behaviour of another call."""
    try:
        return _Module([*_prelude(prelude), *_body(program)]).is_stateless()
    except _NOT_READABLE:
        return False


def is_stateless_test(prelude: str, code: str, given: Collection[str]) -> bool:
    """Whether a code test, to which the names `given` are bound, cannot change another test."""
    try:
        body = _body(code)
        imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        test = ast.parse(f"def test({', '.join(given)}): pass").body[0]
        test.body = [node for node in body if node not in imports]  # type: ignore[attr-defined]
        return _Module([*_prelude(prelude), *imports, test], missing_raises=False).is_stateless()
    except _NOT_READABLE:
        return False


@lru_cache(64)
def _prelude(text: str) -> list[ast.stmt]:
    """Parses a prelude, once for all programs of a problem; its nodes are never changed."""
    return _body(text)


def _body(text: str) -> list[ast.stmt]:
    if len(text) > MAX_CHARS:
        raise ValueError("too long to be worth it")
    return ast.parse(text.removeprefix("\ufeff")).body


class _Module:
    def __init__(self, body: list[ast.stmt], missing_raises: bool = True):
        """`missing_raises`: whether a name that is bound nowhere raises; in a test it may be a
        class of the program (objects.py)."""
        self.body, self.missing_raises = body, missing_raises
        # A name that is bound anywhere may be used everywhere: scopes are not followed.
        self.defined: set[str] = set()
        self.modules: dict[str, set[str] | None] = {}
        self.classes: set[str] = set()
        self.methods: set[ast.AST] = set()
        self.selves: set[ast.AST] = set()
        self.unusable: set[str] = set()
        self.own: set[str] = set()
        self.imported: set[str] = set()
        self.generic_types: set[str] = set()
        self.typing: set[str] = set()
        self.parts: dict[ast.AST, list[ast.AST]] = {}
        nodes = _all_nodes(body, self.parts)
        for node in nodes:
            if type(node) in _BINDING:
                self._note(node)
        for node in nodes:
            if isinstance(node, ast.arg) and node not in self.selves:
                self.defined.add(node.arg)
        if self.selves and "self" in self.defined:
            self.unusable.add("self")

    def _note(self, node: ast.AST) -> None:
        """Records the names that a statement or expression binds."""
        match node:
            case ast.FunctionDef(name=name):
                if node in self.methods:
                    self.own.add(name)
                if not (name == "__init__" and node in self.methods):
                    self.defined.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                self.own.add(name)
            case ast.ClassDef(name=name, body=body):
                self.classes.add(name)
                for method in body:
                    if isinstance(method, ast.Assign):
                        self.own.update(t.id for t in method.targets if isinstance(t, ast.Name))
                    if _is_method(method):
                        self.methods.add(method)
                        self.selves.add(method.args.args[0])
            case ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
                self.defined.add(name)
            case ast.Import(names=names):
                for alias in names:
                    name = alias.asname or alias.name.partition(".")[0]
                    allowed = _MODULES.get(alias.name, set())
                    twice = name in self.modules
                    self.modules[name] = set() if twice else allowed
                    if alias.name == "typing" and not twice:
                        self.typing.add(name)
            case ast.ImportFrom(module=module, names=names):
                usable = _MODULES.get(module or "", set())
                for alias in names:
                    name = alias.asname or alias.name
                    if module == "typing" and alias.name in _GENERIC_TYPES:
                        self.generic_types.add(name)
                    if usable is not None and alias.name not in usable:
                        self.unusable.add(name)
                    self.imported.add(name)

    def is_stateless(self) -> bool:
        for_annotations = (self.imported | _BUILTINS) - self.defined - self.unusable
        self.defined |= self.imported
        hidden = {name for name in self.defined if name.startswith("_") and name != "_"}
        bound = self.defined | self.classes | self.modules.keys()
        hidden |= bound & _OTHER_BUILTINS
        self.unusable |= self.classes | self.modules.keys()
        self.bound = bound | self.unusable
        self.annotating = for_annotations - self.unusable | self.generic_types
        self.defined = (
            self.defined | _BUILTINS | ({"self"} if self.selves else set())
        ) - self.unusable
        return not hidden and all(self._outside(node) for node in self.body)

    def _outside(self, node: ast.stmt, in_class: bool = False) -> bool:
        """Whether a statement of the module only makes functions and constants, without calls."""
        match node:
            case ast.Import() | ast.ImportFrom(level=0) if not in_class:
                return not any(alias.name == "*" for alias in node.names)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return True
            case ast.Assign(targets=[ast.Name()], value=value):
                return _is_constant(value)
            case ast.FunctionDef():
                return self._inside(node)
            case ast.ClassDef(keywords=[], decorator_list=[], body=body) if not in_class:
                plain = [base.id for base in node.bases if isinstance(base, ast.Name)]
                generic = getattr(node, "type_params", [])
                return (
                    not generic
                    and plain == ["object"] * len(node.bases)
                    and all(
                        self._outside(part, in_class=True)
                        and (not isinstance(part, ast.FunctionDef) or _is_method(part))
                        for part in body
                    )
                )
            case ast.If(test=test, orelse=[]):  # the program is a module here, and no script
                return ast.unparse(test) == "__name__ == '__main__'"
        return False

    def _inside(self, node: ast.AST) -> bool:
        """Whether a function, or a part of one, is stateless."""
        if type(node) in _CERTAIN:
            return all(map(self._inside, self.parts[node]))
        match node:
            case ast.FunctionDef(decorator_list=[], args=arguments, body=body, returns=returned):
                values = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
                return (
                    all(map(_is_constant, values))
                    and not getattr(node, "type_params", [])
                    and self._annotation(returned)
                    and all(map(self._inside, (arguments, *body)))
                )
            case ast.arg(annotation=annotation):
                return self._annotation(annotation)
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                parts = [target, value] if value else [target]
                return self._annotation(annotation) and all(map(self._inside, parts))
            case ast.Compare(left=first, ops=operators, comparators=others):
                for left, operator, right in zip([first, *others], operators, others, strict=False):
                    by_identity = isinstance(operator, ast.Is | ast.IsNot)
                    if by_identity and not (_is_single(left) or _is_single(right)):
                        return False
            case ast.Lambda(args=arguments):
                values = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
                if not all(_is_constant(v) or isinstance(v, ast.Name) for v in values):
                    return False
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in self.modules:
                usable = self.modules[owner]
                free = usable is None and not name.startswith(_NOT_ATTRIBUTES)
                return isinstance(node.ctx, ast.Load) and (free or name in (usable or ()))
            case ast.Attribute(value=ast.Name(id=owner)) if owner not in self.defined:
                return self._is_missing(owner)
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if self.selves:
                return "self" in self.defined and not name.startswith("__")
            case ast.Attribute(value=value, attr="format" | "format_map" as name):
                return name == "format" and _is_plain_format(value)
            case ast.Call(func=ast.Name(id=name)) if name in self.classes:
                return all(self._inside(part) for part in (*node.args, *node.keywords))
            case ast.Attribute(attr=name, ctx=context):
                known = name in _ATTRIBUTES or name in self.own
                if not known or name.startswith(_NOT_ATTRIBUTES):
                    return False
                if not isinstance(context, ast.Load):
                    return False
            case ast.Try(finalbody=[_, *_]):  # may hide that memory ran out
                return False
            case ast.Name(id=name):
                return name in self.defined or self._is_missing(name)
            case ast.ExceptHandler(type=kind):
                kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
                if not all(isinstance(k, ast.Name) and k.id in _ERRORS for k in kinds):
                    return False
        return type(node) in _CONDITIONAL and all(map(self._inside, self.parts[node]))

    def _annotation(self, node: ast.expr | None) -> bool:
        """Whether an annotation names types only: evaluating it calls nothing of the program."""
        match node:
            case None | ast.Constant():
                return True
            case ast.Name(id=name):
                return name in self.annotating or self._is_missing(name)
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                if owner in self.typing:
                    return name in _GENERIC_TYPES
                return name in (self.modules.get(owner) or ())
            case ast.Subscript(value=value, slice=inner):
                return self._annotation(value) and self._annotation(inner)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self._annotation(left) and self._annotation(right)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return all(map(self._annotation, parts))
        return False

    def _is_missing(self, name: str) -> bool:
        """Whether a name is bound nowhere: then it raises NameError, as it would alone."""
        return self.missing_raises and not (
            name in self.bound or name in _OTHER_BUILTINS or name.startswith("_")
        )


def _all_nodes(body: list[ast.stmt], parts: dict[ast.AST, list[ast.AST]]) -> list[ast.AST]:
    """Returns every node, each after its parent; fills `parts` with the direct children of each."""
    nodes: list[ast.AST] = list(body)
    for node in nodes:
        parts[node] = below = _parts(node)
        nodes += below
    return nodes


def _parts(node: ast.AST) -> list[ast.AST]:
    """Returns the direct children of a node, without bare ones, as a list: the generators of ast
    take twice as long."""
    children: list[ast.AST] = []
    for part in vars(node).values():
        if type(part) is list:
            children += [one for one in part if isinstance(one, ast.AST) and type(one) not in _BARE]
        elif isinstance(part, ast.AST) and type(part) not in _BARE:
            children.append(part)
    return children


def _is_single(node: ast.expr) -> bool:
    """Whether an expression is a constant of which there is one object only."""
    return isinstance(node, ast.Constant) and isinstance(node.value, bool | NoneType | EllipsisType)


def _is_constant(node: ast.expr) -> bool:
    """Whether an expression is an immutable constant."""
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


def _is_plain_format(node: ast.expr) -> bool:
    """Whether a constant is a format string whose fields are arguments, not attributes or items.

    Raises:
        ValueError: the string is no valid format.
    """
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return False
    texts = [node.value]
    for text in texts:  # the format of a field may hold fields, and is checked too
        for _, field, form, _ in string.Formatter().parse(text):
            if field and not field.replace("_", "a").isalnum():
                return False
            texts += [form] if form else []
    return True


def _is_method(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    """Whether a statement of a class is a function whose first parameter is `self`."""
    return (
        isinstance(node, ast.FunctionDef)
        and [a.arg for a in (*node.args.posonlyargs, *node.args.args)][:1] == ["self"]
        and not node.args.posonlyargs
    )
