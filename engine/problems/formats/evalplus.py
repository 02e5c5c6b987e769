"""HumanEval+ and MBPP+ as EvalPlus releases them: inputs, and a reference for expected results.

Row: `task_id` ("HumanEval/0", "Mbpp/2", or the number of a task of MBPP), `prompt`, `entry_point`,
`canonical_solution` (a body after the prompt, or a whole function), `base_input` and `plus_input`
(lists of argument lists), `atol`, `contract`.

The file has no expected results, so each test calls the reference and the program with the same
arguments, in the judge. The test holds the reference compressed: public tests appear in prompts,
and must not reveal it. Results agree as in evalplus/eval/__init__.py: `==`, or within `atol` (1e-6
for floats where atol is 0) and rtol 1e-7; as sets, by truth value, or by a polynomial's value for
the functions that its special oracles name (those of Mbpp/164, 558 and 581 are left out: there only
`==` counts).

Each base input is one test, plus inputs are tested in groups. Inputs whose call appears in the
prompt are public.
"""

from __future__ import annotations

import base64
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from engine.problems.formats import assertions, humaneval, statements
from engine.problems.formats.fields import Fields, RowError, plain
from engine.problems.formats.numpy_shim import CLOSE
from engine.problems.formats.visible_tests import normalized, shows_call, split_tests
from engine.problems.problem import CodeTest, Problem
from engine.sandbox.guest.literals import to_literal

FIELDS = (
    "task_id", "prompt", "entry_point", "canonical_solution", "base_input", "plus_input", "atol",
)  # fmt: skip
_RTOL = 1e-7
_AS_SETS = frozenset(
    {"similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly",
     "larg_nnum", "intersection_array", "find_dissimilar", "Diff"}
)  # fmt: skip
_BY_TRUTH = frozenset({"check_str", "text_match_three", "text_starta_endb"})
_RULES = {
    "find_zero": "abs(sum(c * actual ** i for i, c in enumerate(given[0]))) <= atol",
    "sum_div": "actual == expected or actual == 0",
    **dict.fromkeys(_AS_SETS, "set(actual) == set(expected)"),
    **dict.fromkeys(_BY_TRUTH, "bool(actual) == (expected is not None and expected is not False)"),
}
_CLOSE_ENOUGH = "actual == expected or atol != 0 and _close(actual, expected, {rtol}, atol)"
_TEST = """nan, inf = float("nan"), float("inf")
inputs = {inputs}

def compare(given):
    expected = reference["{name}"](*copy.deepcopy(given))
    actual = candidate(*copy.deepcopy(given))
    atol = {atol} or (1e-6 if is_floats(expected) else 0)
    arguments = ", ".join(map(repr, given))
    assert {rule}, f"{name}({{arguments}}) is {{expected!r}}, not {{actual!r}}"

def is_floats(value):
    items = value if isinstance(value, (list, tuple)) and value else [value]
    return all(isinstance(item, float) for item in items)
{close}
import base64, copy, zlib
reference = {{}}
exec(zlib.decompress(base64.b64decode("{packed}")), reference)
for given in inputs:
    compare(given)
"""


def recognises(row: Mapping[str, Any]) -> bool:
    return {"prompt", "entry_point", "canonical_solution", "base_input"} <= row.keys()


def problem(fields: Fields) -> Problem:
    prompt, name = fields.text("prompt"), fields.text("entry_point")
    reference = humaneval.reference_of(prompt, fields)
    if not reference:
        remedy = "is empty; the tests compare with its results, so nothing can be judged without it"
        raise RowError("canonical_solution", fields.data.get("canonical_solution"), remedy)
    is_code = f"def {name}" in prompt
    task = fields.id("task_id", "HumanEval" if is_code else "Mbpp")
    arguments = list if is_code else _restored(task)
    base, plus = (_inputs(fields, field, arguments) for field in ("base_input", "plus_input"))
    if not base and not plus:
        raise RowError("base_input", base, "holds no input; a problem without tests is no problem")
    sets = [[given] for given in base]
    sets += [plus[start:end] for start, end in assertions.groups(len(plus))]
    write = _writer(name, reference, fields.data.get("atol") or 0)
    statement = normalized(prompt)
    shown = [
        i < len(base) and shows_call(statement, name, ", ".join(map(to_literal, inputs[0])))
        for i, inputs in enumerate(sets)
    ]
    public, private = split_tests([CodeTest(write(inputs)) for inputs in sets], shown)
    text = prompt.strip(" \n\"'")
    signature = statements.signature_of(reference, name)
    return Problem(
        id=task,
        statement=(
            statements.complete(prompt, name)
            if is_code
            else statements.function(text, name, signature)
        ),
        entry_point=name,
        public_tests=public,
        private_tests=private,
        reference=reference,
        prelude=humaneval.prelude(prompt, name) if is_code else "",
    )


def _inputs(fields: Fields, field: str, restore: Callable[[list[Any]], Any]) -> list[list[Any]]:
    value = fields.json(field)
    if value is None or value == {}:  # how a table that was saved empty is read
        return []
    if not isinstance(value, list) or not all(isinstance(given, list) for given in value):
        raise RowError(field, value, "must be a list of lists of arguments")
    try:
        return [plain(field, list(restore(given))) for given in value]
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, RowError):
            raise
        raise RowError(field, value, f"are not the arguments of this task: {error}") from None


def _writer(name: str, reference: str, atol: Any) -> Callable[[list[list[Any]]], str]:
    if type(atol) not in (int, float) or not abs(atol) <= sys.float_info.max:
        raise RowError("atol", atol, "must be a number")
    if name == "find_zero":
        atol = atol or 1e-4
    packed = base64.b64encode(zlib.compress(reference.encode("utf-8", "surrogatepass"), 9)).decode()
    rule = _RULES.get(name, _CLOSE_ENOUGH.format(rtol=_RTOL))

    def write(inputs: list[list[Any]]) -> str:
        return _TEST.format(
            inputs=to_literal(inputs), packed=packed, close=CLOSE, name=name, atol=atol, rule=rule
        )

    return write


def _restored(task: str) -> Callable[[list[Any]], Any]:
    """Returns the function that converts arguments from JSON to what MBPP's functions accept.

    JSON has no tuples, sets or complex numbers; EvalPlus restores them by the number of the task
    (`mbpp_deserialize_inputs` in evalplus/data/mbpp.py).
    """
    number = task.rpartition("/")[2]
    return next((how for tasks, how in _RESTORE.items() if number in map(str, tasks)), list)


def _deep(value: Any) -> Any:
    return tuple(map(_deep, value)) if isinstance(value, list) else value


def _tuples(value: Any) -> list[tuple[Any, ...]]:
    return [tuple(item) for item in value]


_RESTORE: dict[tuple[int, ...], Callable[[list[Any]], Any]] = {
    (2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726,
     740, 744, 809): _tuples,
    (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780): (
        lambda given: [_tuples(argument) for argument in given]
    ),
    (75, 413, 444, 753): lambda given: [_tuples(given[0]), given[1]],
    (106, 750): lambda given: [given[0], tuple(given[1])],
    (115,): lambda given: [
        [set(item) if isinstance(item, list) and item else {} for item in given[0]]
    ],
    (124,): lambda given: [float(given[0]), complex(given[1])],
    (250, 405, 446, 617, 720, 763, 808): lambda given: [tuple(given[0]), given[1]],
    (259, 401, 445): lambda given: [tuple(_tuples(argument)) for argument in given],
    (278,): lambda given: [
        tuple([tuple(item) if isinstance(item, list) else item for item in given[0]])
    ],
    (307,): lambda given: [tuple(given[0]), given[1], given[2]],
    (722,): lambda given: [{key: tuple(value) for key, value in given[0].items()}, *given[1:]],
    (252,): lambda given: [complex(given[0])],
    (580, 615, 791): lambda given: [_deep(argument) for argument in given],
}  # fmt: skip
