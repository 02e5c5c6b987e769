"""Splitting of test code: one `CodeTest` per assertion if that preserves its meaning.

A body is a sequence of set-up statements (imports, assignments, definitions) and units (statements
that contain an `assert`, or a table loop as EvalPlus writes it). Each unit becomes a test with all
preceding set-up statements. That is equivalent to running the whole body if no unit defines or
changes what a later statement uses, and if the body has no other statements; otherwise the body is
kept whole.

Invariant: all tests of a body together assert what the body asserts; nothing here runs code.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

from engine.problems.formats.fields import RowError

_NO_NAMES: Mapping[str, str] = {}
MAX_SINGLE_CASES = 8
MAX_CASE_GROUPS = 16
_SETUP = (
    ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.FunctionDef,
    ast.ClassDef, ast.Expr,
)  # fmt: skip


def parsed(field: str, code: str) -> ast.Module:
    """Returns the syntax tree of test code; raises `RowError` if it does not parse."""
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RowError(field, code, f"is not Python that can be parsed: {error}") from None


def split(body: Sequence[ast.stmt]) -> list[str] | None:
    """Returns the code of each test of a body, set-up included; None if the body must be kept
    whole; empty if it asserts nothing.

    Assertions that always hold (`assert True`) test nothing and are left out.
    """
    body = [node for node in body if not _asserts_nothing(node)]
    inside = [inner for node in body for inner in ast.walk(node)]
    if not any(isinstance(inner, ast.Assert | ast.Raise) for inner in inside):
        return None if any(map(checks, inside)) else []
    units = [i for i, node in enumerate(body) if _asserts(node)]
    if not units or not _splits(body, units):
        return None
    tests: list[str] = []
    for position in units:
        setup = [node for node in body[:position] if not _asserts(node)]
        tests += _cases(setup, body[position]) or [_code([*setup, body[position]])]
    return tests


def called(code: str, name: str) -> str:
    """Returns the arguments of the first call of `name` in test code as text; empty if none."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            return ", ".join(ast.unparse(argument) for argument in (*node.args, *node.keywords))
    return ""


def function_under_test(field: str, tests: Sequence[str], defined: str = "") -> str:
    """Returns the function that most tests call; among equals a name in lower case, as classes are
    not written, then the first one.

    `defined` is a reference program; if it defines some of the functions, only those count. A
    function with the name of a built-in counts only if no other function is called.

    Raises:
        RowError: no function is called.
    """
    own = {node.name for node in _functions(defined)}
    counts: Counter[str] = Counter()
    for test in tests:
        tree = parsed(field, test)
        local = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        local |= {name.asname or name.name for node in ast.walk(tree) for name in _imported(node)}
        counts.update(list(dict.fromkeys(_call_names(tree, local))))
    others = {name: count for name, count in counts.items() if not hasattr(builtins, name)}
    names = [n for n in others if n in own] or list(others) or [n for n in counts if n in own]
    if not names:
        remedy = "calls no function by its name, so no function can be requested"
        raise RowError(field, tests[0] if tests else None, remedy)
    return max(names, key=lambda name: (counts[name], not name[:1].isupper()))


def refuse_further_functions(field: str, tests: Sequence[str], defined: str, name: str) -> None:
    """Raises `RowError` if tests call functions of the reference `defined` besides `name`: the
    judge has only one function of a program."""
    own = {node.name for node in _functions(defined)} - {name}
    own -= {other for other in own if hasattr(builtins, other)}  # a test may mean the built-in one
    for test in tests:
        tree = parsed(field, test)
        local = _defined_names(tree)
        if other := next((called for called in _call_names(tree, local) if called in own), None):
            remedy = f"calls {name} and {other} of the solution; only one function can be judged"
            raise RowError(field, test, remedy)


def refuse_redefinition(field: str, tests: Sequence[str], name: str) -> None:
    """Raises `RowError` if a test gives the function under test, `name`, a value of its own at its
    top level: it would judge that one, whatever a program does."""
    for test in tests:
        for node in parsed(field, test).body:
            names = {one.asname or one.name for one in _imported(node)}
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif not isinstance(node, ast.Import | ast.ImportFrom):
                names |= _names(node, ast.Store)
            if name in names and ast.unparse(node) != f"{name} = candidate":
                remedy = f"defines {name}, the function under test, itself; no program is judged"
                raise RowError(field, ast.unparse(node), remedy)


def refuse_own_objects(field: str, tests: Sequence[str], name: str, prelude: str = "") -> None:
    """Raises `RowError` if a test compares objects of a class of the solution, tests for their
    class, or reads of a result what no plain value has. A judge has neither the class nor the
    object: what a program's own `==` says of them would let it pass any test. `prelude` runs before
    the tests."""
    body = _statements(prelude)
    before = bound_by(ast.Module(body, [])) | {name, *dir(builtins)}
    shared, enums = _own_classes(body)
    for test in tests:
        tree = parsed(field, test)
        known = before | bound_by(tree)
        unknown = _names(tree, ast.Load) - known if "*" not in known else set()
        classes = {one for one in unknown if one[:1].isupper()} | shared - bound_by(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and (member := _member(node, name, enums)):
                remedy = f"compares {member}, which is no plain value; only plain values are judged"
                raise RowError(field, test, remedy)
        if kind := _compared_class(tree, name, classes):
            remedy = (
                f"compares objects of the solution's class {kind}; only plain values are judged"
            )
            raise RowError(field, test, remedy)
        if attribute := _attribute_of_result(tree, name):
            remedy = f"reads .{attribute} of what {name} returns; only plain values are judged"
            raise RowError(field, test, remedy)


def _own_classes(body: Sequence[ast.stmt]) -> tuple[set[str], set[str]]:
    """Returns the classes that a prelude defines and whose objects are no plain values, and those
    of them that are enumerations."""
    own: set[str] = set()
    enums: set[str] = set()
    for node in body:
        if not isinstance(node, ast.ClassDef):
            continue
        bases = {ast.unparse(base).rpartition(".")[2].partition("[")[0] for base in node.bases}
        if bases <= own | {"object", "ABC", "Generic", "Protocol", "Enum", "Flag"}:
            own.add(node.name)
            if bases & {"Enum", "Flag"}:
                enums.add(node.name)
    return own, enums


def _member(node: ast.Compare, name: str, enums: set[str]) -> str:
    """Returns the member of an enumeration with which a result of `name` is compared."""
    sides = node.left, *node.comparators
    if any(_is_call_of(side, name) for side in sides):
        for side in sides:
            owner = side.value if isinstance(side, ast.Attribute) else None
            if isinstance(owner, ast.Name) and owner.id in enums:
                return ast.unparse(side)
    return ""


def _compared_class(tree: ast.Module, name: str, classes: set[str]) -> str:
    """Returns the class of the solution of which an assertion compares an object; empty if none.
    An object that is passed to the function, and attributes that were set, can be judged."""
    made = {
        target.id: kind
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and (kind := _class_of(node.value, classes))
    }
    for node in ast.walk(tree):
        kinds: Iterable[str] = ()
        if _is_call_of(node, "isinstance") or _is_call_of(node, "issubclass"):
            kinds = sorted(classes & _names(node, ast.Load))
        elif isinstance(node, ast.Compare):
            compared = (node.left, *node.comparators)
            kinds = filter(None, (_class_of(one, classes, made) for one in compared))
        if kind := next(iter(kinds), ""):
            return kind
    return ""


def _class_of(node: ast.expr, classes: set[str], made: Mapping[str, str] = _NO_NAMES) -> str:
    """Returns the class of which a value, or a part of a list, is an object, or is itself."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return next((kind for item in node.elts if (kind := _class_of(item, classes, made))), "")
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Name):
        return node.id if node.id in classes else made.get(node.id, "")
    return ""


def _attribute_of_result(tree: ast.Module, name: str) -> str:
    """Returns an attribute of a result that no value has which can be returned; empty if none."""
    results = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_call_of(node.value, name)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr not in _ATTRIBUTES:
            owner = node.value
            if _is_call_of(owner, name) or (isinstance(owner, ast.Name) and owner.id in results):
                return node.attr
    return ""


_ATTRIBUTES = {
    attribute
    for kind in (
        list, tuple, dict, set, frozenset, str, bytes, bytearray, int, float, complex, range,
        Counter, OrderedDict, deque, Fraction, Decimal, date, datetime, time, timedelta, type(None),
        BaseException,
    )
    for attribute in dir(kind)
}  # fmt: skip
"""Of plain values, and of those that `engine.sandbox.guest.shapes` makes again in the judge."""


def _defined_names(tree: ast.Module) -> set[str]:
    """Returns the names of functions and classes that a test defines, of their arguments, and of
    what it imports."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    names = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return names | {one.asname or one.name for n in ast.walk(tree) for one in _imported(n)}


def bound_by(tree: ast.Module) -> set[str]:
    """Returns the names that test code gives a value, as variable, function, class or import."""
    return _names(tree, ast.Store) | _defined_names(tree)


def _is_call_of(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _call_names(tree: ast.Module, local: set[str]) -> list[str]:
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [func.id for func in calls if isinstance(func, ast.Name)]
    return [name for name in names if name not in local]


def imports_for(test: str, program: str) -> list[str]:
    """Returns the program's top-level imports of names that a test uses and does not define.

    Some authors ran a test in the namespace of the program, where such names were defined; a judge
    does not have them. Built-in names and names that the test defines are not imported.
    """
    tree = parsed("test", test)
    made = _names(tree, ast.Store) | {node.name for node in _functions(test)}
    made |= {name.asname or name.name for node in ast.walk(tree) for name in _imported(node)}
    missing = {name for name in _names(tree, ast.Load) - made if not hasattr(builtins, name)}
    return [
        ast.unparse(_of_one_name(node, name))
        for node in _statements(program)
        for name in _imported(node)
        if (name.asname or name.name.partition(".")[0]) in missing
    ]


def _of_one_name(node: ast.stmt, name: ast.alias) -> ast.stmt:
    if isinstance(node, ast.ImportFrom):
        return ast.ImportFrom(node.module, [name], node.level)
    return ast.Import([name])


def _imported(node: ast.AST) -> list[ast.alias]:
    return node.names if isinstance(node, ast.Import | ast.ImportFrom) else []


def _functions(program: str) -> list[ast.FunctionDef]:
    return [node for node in _statements(program) if isinstance(node, ast.FunctionDef)]


def _statements(program: str) -> list[ast.stmt]:
    try:
        return ast.parse(program).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _code(nodes: Sequence[ast.stmt]) -> str:
    return ast.unparse(ast.Module(list(nodes), []))


def _asserts(node: ast.stmt) -> bool:
    """Returns whether running this statement checks something."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return False
    checks = (ast.Assert, ast.Raise)
    return any(isinstance(inner, checks) for inner in ast.walk(node)) or bool(_table(node))


def refuse_without_assertion(field: str, tests: Sequence[str]) -> None:
    """Raises `RowError` for a test that every program passes which raises nothing."""
    for test in tests:
        if not any(map(checks, ast.walk(parsed(field, test)))):
            raise RowError(field, test, "asserts nothing, so a wrong program would pass it, too")


def checks(node: ast.AST) -> bool:
    """Returns whether a node may fail because of what a program returns: an assertion that does not
    always hold, a `raise`, or a call such as `self.assertEqual`."""
    if isinstance(node, ast.Assert):
        return not _asserts_nothing(node)
    func = node.func if isinstance(node, ast.Call) else None
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    return isinstance(node, ast.Raise) or name.startswith(("assert", "raises", "fail"))


def _asserts_nothing(node: ast.AST) -> bool:
    """Returns whether a node is an assertion that always holds: of a true constant, or of a tuple,
    which is what brackets around condition and message make of them."""
    if not isinstance(node, ast.Assert):
        return False
    tested = node.test
    if isinstance(tested, ast.Constant):  # `assert False` says that it must not be reached
        return bool(tested.value)
    return isinstance(tested, ast.Tuple) and bool(tested.elts)


def _splits(body: Sequence[ast.stmt], units: Sequence[int]) -> bool:
    variables: set[str] = set()
    left_behind: set[str] = set()  # names that a unit may have defined or changed
    for position, node in enumerate(body):
        used = _names(node, ast.Load)
        if position in units:
            if (used - _names(node, ast.Store)) & left_behind:
                return False
            left_behind |= _names(node, ast.Store) | (_receivers(node) & variables)
        elif not isinstance(node, _SETUP) or used & left_behind:
            return False
        elif not isinstance(node, ast.FunctionDef | ast.ClassDef):
            variables |= _names(node, ast.Store)
    return True


def _receivers(node: ast.AST) -> set[str]:
    """Returns the names whose methods are called, or whose next item is taken, since both may
    change them."""
    calls = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    owners = [call.func.value for call in calls if isinstance(call.func, ast.Attribute)]
    owners += [call.args[0] for call in calls if _is_call_of(call, "next") and call.args]
    return {owner.id for owner in owners if isinstance(owner, ast.Name)}


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    names = [inner for inner in ast.walk(node) if isinstance(inner, ast.Name)]
    return {inner.id for inner in names if isinstance(inner.ctx, context)}


def _table(node: ast.stmt) -> list[str]:
    """Returns the names of the lists that a loop as EvalPlus writes it iterates over; else empty.

    `for i, (inp, exp) in enumerate(zip(inputs, results))`, or without enumerate or zip.
    """
    if not isinstance(node, ast.For):
        return []
    source = _argument_of(node.iter, "enumerate") or [node.iter]
    source = _argument_of(source[0], "zip") or source
    names = [item.id for item in source if isinstance(item, ast.Name)]
    return names if len(names) == len(source) and names[0] == "inputs" else []


def _argument_of(node: ast.expr, function: str) -> list[ast.expr]:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return node.args if is_call and node.func.id == function else []  # type: ignore[union-attr]


def _cases(setup: Sequence[ast.stmt], loop: ast.stmt) -> list[str]:
    """Returns the loop over a table as loops over its parts; empty if it is not such a loop.

    Each of the first MAX_SINGLE_CASES cases is one part, the rest form at most MAX_CASE_GROUPS
    groups: a judge is started for each test, and a table may have thousands of cases.
    """
    tables = {name: _list_of(setup, name) for name in _table(loop)}
    lengths = {len(table) for table in tables.values() if table is not None}
    if not tables or None in tables.values() or len(lengths) != 1:
        return []
    remaining = [node for node in setup if _target(node) not in tables]
    tests = []
    for start, end in groups(lengths.pop()):
        parts = [
            ast.Assign([ast.Name(name, ast.Store())], ast.List(table[start:end], ast.Load()))
            for name, table in tables.items()
            if table is not None
        ]
        module = ast.fix_missing_locations(ast.Module([*remaining, *parts, loop], []))
        tests.append(ast.unparse(module))
    return tests


def groups(count: int) -> list[tuple[int, int]]:
    """Returns (start, end) of the groups in which `count` cases are tested."""
    single = min(count, MAX_SINGLE_CASES)
    size = max(1, -(-(count - single) // MAX_CASE_GROUPS))
    return [(i, i + 1) for i in range(single)] + [
        (start, min(start + size, count)) for start in range(single, count, size)
    ]


def _list_of(setup: Sequence[ast.stmt], name: str) -> list[ast.expr] | None:
    for node in reversed(setup):
        if _target(node) == name and isinstance(node, ast.Assign):
            return node.value.elts if isinstance(node.value, ast.List) else None
    return None


def _target(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        return target.id if isinstance(target, ast.Name) else ""
    return ""
