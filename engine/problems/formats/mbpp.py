"""MBPP (google-research/mbpp), its sanitized variant, and the table of MBPP+ (evalplus/mbppplus).

Row: `task_id`, `text` or (sanitized) `prompt`, `code` (a solution), `test_list` (assertions),
`test_setup_code` or (sanitized) `test_imports`, `challenge_test_list`; MBPP+ adds `test`, Python
with tables of inputs and results.

The entry point is the function that the assertions call; without `code` there is no reference.
If there are tests beyond `test_list`, that list is public, as in the authors' own prompt; otherwise
its first third is.

All 974 references of the full set pass; that of 123 needs 1.8 s of CPU time, with a default limit
of 2 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.problems.formats import assertions, numpy_shim, statements, unjudged
from engine.problems.formats.fields import Fields, RowError
from engine.problems.formats.visible_tests import split_tests
from engine.problems.problem import CodeTest, Problem

FIELDS = (
    "task_id", "text", "prompt", "code", "test_list", "test_setup_code", "test_imports",
    "challenge_test_list", "test",
)  # fmt: skip


def recognises(row: Mapping[str, Any]) -> bool:
    return "test_list" in row and bool({"text", "prompt"} & row.keys())


def problem(fields: Fields) -> Problem:
    text, code, listed = (
        fields.text("text", "prompt"),
        fields.text_or_empty("code"),
        fields.texts("test_list"),
    )
    if not listed:
        raise RowError("test_list", listed, "holds no test; a problem without tests is no problem")
    name = assertions.function_under_test("test_list", listed, code)
    assertions.refuse_further_functions("test_list", listed, code, name)
    further = [*fields.texts("challenge_test_list"), *_table(fields)]
    setup = "\n".join([fields.text_or_empty("test_setup_code"), *fields.texts("test_imports")])
    tests = [_test(setup, test, code) for test in (*listed, *further)]
    for field, part in (
        ("test_list", tests[: len(listed)]), ("challenge_test_list", tests[len(listed) :]),
    ):  # fmt: skip
        assertions.refuse_without_assertion(field, [test.code for test in part])
    assertions.refuse_redefinition("test_setup_code", [test.code for test in tests], name)
    unjudged.refuse("test_list", [test.code for test in tests], name)
    assertions.refuse_own_objects("test_list", [test.code for test in tests], name)
    shown = [bool(further) and i < len(listed) for i in range(len(tests))]
    public, private = split_tests(tests, shown)
    signature = statements.signature_of(code, name)
    examples = listed if further else listed[: len(public)]
    return Problem(
        id=fields.id("task_id", "mbpp"),
        statement=statements.function(text, name, signature, examples),
        entry_point=name,
        public_tests=public,
        private_tests=private,
        reference=code,
    )


def _test(setup: str, test: str, code: str) -> CodeTest:
    """Returns a test with its set-up and imports; the authors ran tests after the solution, whose
    imports some of them use."""
    whole = "\n".join([setup, test]).strip()
    return CodeTest("\n".join([*assertions.imports_for(whole, code), whole]))


def _table(fields: Fields) -> list[str]:
    """Returns the tests of MBPP+."""
    test = fields.text_or_empty("test")
    if not test:
        return []
    body = numpy_shim.without_numpy(assertions.parsed("test", test).body)
    return assertions.split(body) or [test]
