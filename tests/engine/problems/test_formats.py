"""Tests that rows of published data sets become problems that their own references solve."""

import base64
import json
import os
import pickle
import zlib
from dataclasses import replace

import pytest

from engine.problems.formats import FORMATS, format_of
from engine.problems.formats.fields import Fields, RowError
from engine.problems.formats.visible_tests import normalized, shows_call, shows_run
from engine.problems.problem import CallTest, CodeTest, Limits, StdinTest
from engine.sandbox.host.verify import verify
from tests.engine.problems import rows

ROWS = {
    "HUMANEVAL": "humaneval",
    "HUMANEVAL_PLUS_TABLE": "humaneval",
    "EVALPLUS": "evalplus",
    "MBPP_PLUS": "evalplus",
    "MBPP_PLUS_NUMBERED": "evalplus",
    "MBPP": "mbpp",
    "MBPP_CLASSES": "mbpp",
    "MBPP_SANITIZED": "mbpp",
    "MBPP_PLUS_TABLE": "mbpp",
    "APPS_STDIN": "apps",
    "APPS_CALL": "apps",
    "TACO": "taco",
    "CODECONTESTS": "codecontests",
    "LIVECODEBENCH_CALL": "livecodebench",
    "LIVECODEBENCH_STDIN": "livecodebench",
    "ACECODE": "acecode",
    "KODCODE": "kodcode",
    "CRUXEVAL": "cruxeval",
    "CRUXEVAL_CALL": "cruxeval",
    "HUMANEVAL_X": "humaneval",
    "PRIMEINTELLECT": "primeintellect",
    "DEEPCODER": "deepcoder",
    "DEEPCODER_CASES": "deepcoder",
    "DEEPCODER_CALL": "deepcoder",
    "EURUS": "eurus",
    "RSTAR": "rstar",
    "LEETCODE": "leetcode",
}
FROM = "from solution import divide\nimport pytest\n"
REFERENCES = {
    "LIVECODEBENCH_CALL": (
        "class Solution:\n    def turn(self, nums: List[int], k: int) -> List[int]:\n"
        "        d = deque(nums)\n        d.rotate(k)\n        return tuple(d)\n"
    ),
    "LIVECODEBENCH_STDIN": "print(int(input()) + 1)",
    "DEEPCODER_CALL": "class Solution:\n    def thrice(self, n):\n        return 3 * n",
    "EURUS": "print(3 * int(input()))",
    "RSTAR": "print(3 * int(input()))",
}


def read(row):
    name = format_of(row)
    return FORMATS[name].problem(Fields(row, 1))


def refusal(row):
    with pytest.raises(RowError) as caught:
        read(row)
    return caught.value


@pytest.mark.parametrize("name", ROWS)
def test_the_format_is_detected_from_the_fields(name):
    assert format_of(getattr(rows, name)) == ROWS[name]


@pytest.mark.parametrize("name", ROWS)
def test_a_format_names_all_fields_that_it_needs(name):
    row, one = getattr(rows, name), FORMATS[ROWS[name]]
    chosen = {field: value for field, value in row.items() if field in one.FIELDS}
    assert one.problem(Fields(chosen, 1)) == read(row)


@pytest.mark.parametrize("name", ROWS)
def test_the_reference_passes_and_an_empty_program_does_not(sandbox, name):
    problem = read(getattr(rows, name))
    reference = REFERENCES.get(name, problem.reference)
    right, wrong = verify(sandbox, [(problem, reference), (problem, "pass")])
    assert (right.verdict, right.fraction) == ("passed", 1.0), right.error
    assert not wrong.passed


@pytest.mark.parametrize("name", ROWS)
def test_the_statement_says_what_to_write_and_hides_the_reference(name):
    problem = read(getattr(rows, name))
    requested = problem.entry_point or "stdin"
    assert requested.rpartition(".")[2].replace("example", "f(") in problem.statement
    if ROWS[name] != "cruxeval":
        body = problem.reference.strip().rpartition("\n")[2].strip()
        assert not body or body not in problem.statement


def test_check_is_taken_apart_into_its_assertions():
    problem = read(rows.HUMANEVAL)
    assert problem.prelude.startswith("from typing import List") and "def double" in problem.prelude
    assert "def total" not in problem.prelude
    assert [test.code.splitlines()[-1] for test in problem.public_tests] == [
        "assert candidate([1, 2]) == 6, 'Test 2'"
    ]
    assert len(problem.private_tests) == 2


def test_a_check_that_cannot_be_taken_apart_is_called_whole(sandbox):
    body = "    stack = []\n    stack.append(1)\n    assert candidate(stack) == 2\n    "
    for rest in ("return\n", "assert stack.pop() == 1\n    assert stack == []\n"):
        problem = read({**rows.HUMANEVAL, "test": f"def check(candidate):\n{body}{rest}"})
        assert len({*problem.public_tests, *problem.private_tests}) == 1
        (result,) = verify(sandbox, [(problem, problem.reference)])
        assert result.passed, result.error


def test_check_may_use_another_argument_name(sandbox):
    test = "def check(f):\n    assert f([2]) == 4\n    assert f([]) == 0\ncheck(total)\n"
    problem = read({**rows.HUMANEVAL, "test": test})
    right, wrong = verify(sandbox, [(problem, problem.reference), (problem, "def total(x): pass")])
    assert right.passed and wrong.fraction == 0


def test_a_published_pack_of_tests_is_read():
    packed = (
        "eJxrYJmaz8gABhEZQEZ0tVJmXkFpiZKVgpJhTF5iUnJMnpKOglJ+aQlUNNI1GCJUklpcUlJZkAoSLC5JycxTqtVR"
        "QNJuDNWOILAYhCCIMdI0Ji85MQloWjKQSE5KjMlLSgSam5SciG64nz+y2WACJESMJWYY7ibFG8T5KnaKHgAcinnp"
    )
    problem = read({**rows.LIVECODEBENCH_STDIN, "private_test_cases": packed})
    assert problem.private_tests[0] == StdinTest("1\nabc\n", "YES\n")
    assert len(problem.private_tests) == 4


def test_a_table_of_cases_is_cut_into_single_cases_and_groups():
    problem = read(rows.HUMANEVAL_PLUS_TABLE)
    tests = [*problem.public_tests, *problem.private_tests]
    assert len(tests) == 8 + 13
    assert "inputs = [[[0]]]\nresults = [0]" in tests[0].code
    assert "numpy" not in tests[0].code


def test_the_fraction_passed_means_something(sandbox):
    problem = read(rows.HUMANEVAL_PLUS_TABLE)
    (result,) = verify(
        sandbox, [(problem, "def total(numbers):\n    return min(2 * sum(numbers), 10)")]
    )
    assert 0 < result.fraction < 1


def test_evalplus_compares_with_a_reference_that_no_prompt_can_show(sandbox):
    problem = read(rows.EVALPLUS)
    assert "return x / 2" not in problem.public_tests[0].code
    shown = problem.public_tests[0].code[:400]  # the part that feedback shows
    assert "inputs = [[3.0]]" in shown and "b64decode" not in shown
    near, far = (
        replace(problem, reference=f"def half(x):\n    return x / 2 + {error}")
        for error in ("1e-7", "1e-4")
    )
    for wrong, passes in ((near, True), (far, False)):
        (result,) = verify(sandbox, [(wrong, wrong.reference)])
        assert result.passed is passes
    assert "half(3.0) is 1.5, not 1.5001" in result.error


def test_evalplus_takes_inputs_that_are_no_numbers(sandbox):
    inputs = [[float("nan")], [float("inf")]]
    problem = read({**rows.EVALPLUS, "plus_input": inputs})
    (result,) = verify(sandbox, [(problem, problem.reference)])
    assert result.passed, result.error


def test_arguments_of_mbpp_are_tuples_again():
    for row in (rows.MBPP_PLUS, rows.MBPP_PLUS_NUMBERED):
        problem = read(row)
        assert problem.id == "Mbpp/2"
        assert problem.public_tests[0].code.splitlines()[1] == "inputs = [[(3, 4), (4, 5)]]"
        assert problem.statement.startswith("Find the shared elements.")


def test_a_test_of_mbpp_has_the_imports_of_the_solution_that_it_uses(sandbox):
    code = (
        "import os, sys as system\nfrom collections import Counter, deque\n"
        "def count(x):\n    import math\n    return Counter(x)"
    )
    listed = ["assert count('aa') == Counter({'a': system.maxsize // system.maxsize + 1})"]
    problem = read({**rows.MBPP, "code": code, "test_list": listed, "challenge_test_list": []})
    assert problem.public_tests[0].code.splitlines()[:-1] == [
        "import sys as system", "from collections import Counter"
    ]  # fmt: skip
    (result,) = verify(sandbox, [(problem, code)])
    assert result.passed, result.error
    # Names that the test or its set-up defines are the test's own.
    setup = "from math import inf as Counter"
    own = read({**rows.MBPP, "code": code, "test_list": listed, "test_setup_code": setup})
    assert own.public_tests[0].code.splitlines()[:2] == ["import sys as system", setup]


def test_a_function_of_mbpp_may_have_the_name_of_a_built_in_one(sandbox):
    code = "def sum(a, b):\n    return a * b"
    row = {**rows.MBPP, "code": code, "test_list": ["assert sum(2, 5) == 10"]}
    problem = read({**row, "challenge_test_list": []})
    assert problem.entry_point == "sum"
    right, wrong = verify(sandbox, [(problem, code), (problem, "def other(a, b): return 10")])
    assert right.passed and not wrong.passed
    # It is the entry point only if the tests call no other function.
    both = ["assert total([sum(2, 5), 1]) == 11", "assert sum(2, 5) == 10", "assert sum(1, 1) == 1"]
    code += "\ndef total(x):\n    return x[0] + x[1]"
    assert read({**row, "code": code, "test_list": both}).entry_point == "total"


def test_mbpp_shows_its_list_where_there_are_further_tests():
    problem = read(rows.MBPP)
    assert len(problem.public_tests) == 3 and len(problem.private_tests) == 1
    assert "remove(s, ch)" in problem.statement
    assert 'assert remove("PHP","P") == "HP"' in problem.statement
    assert 'remove("x","y")' not in problem.statement
    shared = read(rows.MBPP_SANITIZED)
    assert len(shared.public_tests) == 1 and len(shared.private_tests) == 2
    assert shared.public_tests[0].code.startswith("import math")


def test_an_example_is_recognised_with_its_signs_and_whatever_its_layout():
    statement = normalized(
        "-----Input-----\nx\n-----Example-----\n**Input:**\n-1 2\nOutput\n  3\n`f( -2 , 'a')`"
    )
    assert shows_run(statement, "-1 2\n", "3\n") and not shows_run(statement, "1 2\n", "3\n")
    assert not shows_run(statement, "", "3")
    assert shows_call(statement, "f", '-2, "a"') and not shows_call(statement, "f", "2, 'a'")


def test_apps_shows_the_test_of_the_example():
    problem = read(rows.APPS_STDIN)
    assert problem.public_tests == (StdinTest("1 2\n", "3\n"),)
    assert problem.private_tests[1] == StdinTest("7 8", "15")
    assert problem.entry_point == "" and problem.reference.startswith("a, b")
    assert problem.comparison.tolerance is None


def test_a_column_that_is_null_is_no_text():
    row = {**rows.MBPP, "text": None, "prompt": rows.MBPP["text"]}
    assert read(row) == read(rows.MBPP)


def test_apps_accepts_a_result_with_or_without_its_list():
    problem = read(rows.APPS_CALL)
    assert problem.entry_point == "Solution.count"
    assert problem.public_tests == (CallTest(({"1": 2}, 1), [2], (2,)),)
    single = json.dumps({"fn_name": "count", "inputs": [[{"1": 2}]], "outputs": [[{"3": 4}]]})
    (test,) = read({**rows.APPS_CALL, "input_output": single}).public_tests
    assert test == CallTest(({1: 2},), [{"3": 4}], ({3: 4},))


def test_limits_are_read():
    assert read(rows.APPS_STDIN).limits == Limits(4.0)
    assert read({**rows.TACO, "time_limit": None}).limits == Limits(4.0, 256)
    assert read(rows.LIVECODEBENCH_STDIN).limits == Limits(6.0)
    assert read(rows.TACO).limits == Limits(2.0, 256)
    assert read(rows.CODECONTESTS).limits == Limits(1.5, 245)


def test_decimals_agree_within_a_tolerance_and_whole_numbers_exactly(sandbox):
    assert read(rows.TACO).comparison.tolerance == 1e-5
    data = {"inputs": ["1", "2"], "outputs": ["1000000007", "1"]}
    problem = read({**rows.TACO, "input_output": json.dumps(data)})
    program = "n = int(input())\nprint(1000000008 if n == 1 else 1)"
    (result,) = verify(sandbox, [(problem, program)])
    assert not result.passed


def test_codecontests_keeps_its_public_tests_and_takes_python_3():
    problem = read(rows.CODECONTESTS)
    assert [test.stdin for test in problem.public_tests] == ["1 2\n"]
    assert [test.stdin for test in problem.private_tests] == ["9 3\n", "4 4\n"]
    assert problem.reference == "print(max(map(int, input().split())))"
    listed = [{"input": "1 2\n", "output": "2\n"}]
    assert read({**rows.CODECONTESTS, "public_tests": listed}) == problem


def test_livecodebench_unpacks_its_private_tests():
    problem = read(rows.LIVECODEBENCH_CALL)
    assert problem.entry_point == "Solution.turn"
    assert problem.public_tests == (CallTest(([1, 2], 1), [2, 1]),)
    assert problem.private_tests == (CallTest(([4, 5], 3), [5, 4]),)


class Harmful:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_pickle_that_would_do_something_is_refused_and_not_run(tmp_path):
    target = str(tmp_path / "made")
    for value in (Harmful(target), ["a text in a list"], 7, {"a": "b"}):
        packed = base64.b64encode(zlib.compress(pickle.dumps(value))).decode()
        error = refusal({**rows.LIVECODEBENCH_CALL, "private_test_cases": packed})
        assert error.field == "private_test_cases"
    assert not list(tmp_path.iterdir())
    assert (
        "nothing is run"
        in refusal(
            {
                **rows.LIVECODEBENCH_CALL,
                "private_test_cases": base64.b64encode(
                    zlib.compress(pickle.dumps(Harmful(target)))
                ).decode(),
            }
        ).remedy
    )


@pytest.mark.parametrize("packed", ["not packed", "!", base64.b64encode(b"zz").decode()])
def test_tests_in_an_unknown_packing_are_refused(packed):
    assert refusal({**rows.LIVECODEBENCH_CALL, "private_test_cases": packed}).field == (
        "private_test_cases"
    )


def test_acecode_takes_the_answer_that_passed():
    problem = read(rows.ACECODE)
    assert problem.reference.startswith("def triple")
    assert problem.public_tests == (CodeTest("assert triple(2) == 6"),)
    assert read({**rows.ACECODE, "inferences": None}).reference == ""


def test_kodcode_tests_need_no_pytest(sandbox):
    problem = read(rows.KODCODE)
    assert len(problem.public_tests) + len(problem.private_tests) == 4
    program = rows.KODCODE["solution"].replace("ValueError", "KeyError")
    (result,) = verify(sandbox, [(problem, program)])
    assert result.fraction == 0.75


def test_of_kodcode_tests_those_count_that_pytest_runs_and_that_may_fail(sandbox):
    """The first of two of one name is not run, and one that passes in any case is no test."""
    tests = (
        "def test_a():\n    assert divide(4, 2) == 3\n"
        "def test_a():\n    assert divide(4, 2) == 2\n"
        "def test_b():\n    pass\n"
        "def test_c():\n    divide(1, 1)\n"
        "def check(a, b, c):\n    assert divide(a, b) == c\n"
        "def test_d():\n    check(6, 3, 2)\n"
    )
    problem = read({**rows.KODCODE, "test": FROM + tests})
    assert len(problem.public_tests) + len(problem.private_tests) == 3
    assert verify(sandbox, [(problem, problem.reference)])[0].passed
    helped = FROM + tests.partition("def test_c")[2].partition("\n    divide(1, 1)\n")[2]
    assert len(read({**rows.KODCODE, "test": helped}).private_tests) == 1


def test_a_set_up_of_mbpp_may_hold_the_assertion(sandbox):
    setup = "def check(actual, expected):\n    assert actual == expected"
    row = {"test_setup_code": setup, "test_list": ["check(remove('a', 'a'), '')"]}
    problem = read({**rows.MBPP, **row, "challenge_test_list": []})
    assert verify(sandbox, [(problem, problem.reference)])[0].passed
    assert not verify(sandbox, [(problem, "def remove(s, ch): return s")])[0].passed


def test_json_of_a_json_text_is_read():
    row = {**rows.APPS_STDIN, "input_output": json.dumps(rows.APPS_STDIN["input_output"])}
    assert isinstance(rows.APPS_STDIN["input_output"], str)
    assert read(row) == read(rows.APPS_STDIN)


def test_cruxeval_is_strict_about_types(sandbox):
    problem = read(rows.CRUXEVAL)
    program = "def f(text, n):\n    return [text * n, len(text)]"
    (result,) = verify(sandbox, [(problem, program)])
    assert not result.passed
    assert problem.public_tests == problem.private_tests


@pytest.mark.parametrize(
    ("name", "changes", "field", "part"),
    [
        ("HUMANEVAL", {"test": "def check(candidate):\n    pass\n"}, "test", "asserts nothing"),
        ("HUMANEVAL", {"test": "assert 1 +"}, "test", "not Python"),
        ("HUMANEVAL", {"test": "x = 1"}, "test", "no check"),
        ("HUMANEVAL", {"prompt": "def other(x):\n    '''.'''\n"}, "prompt", "no function total"),
        ("HUMANEVAL", {"entry_point": None}, "entry_point", "not empty"),
        ("EVALPLUS", {"base_input": [], "plus_input": []}, "base_input", "no input"),
        ("EVALPLUS", {"base_input": [3]}, "base_input", "list of lists"),
        ("MBPP_PLUS", {"base_input": [[3]]}, "base_input", "not the arguments"),
        ("MBPP", {"test_list": []}, "test_list", "no test"),
        ("MBPP", {"test_list": ["assert 1 == 1"]}, "test_list", "no function"),
        ("MBPP", {"test_list": "assert"}, "test_list", "list of texts"),
        ("APPS_STDIN", {"input_output": ""}, "input_output", "is empty"),
        ("APPS_STDIN", {"input_output": "{"}, "input_output", "is not JSON"),
        ("APPS_STDIN", {"input_output": '{"inputs": [], "outputs": []}'}, "input_output",
         "no test"),
        ("APPS_STDIN", {"input_output": '{"inputs": ["1"], "outputs": []}'}, "input_output",
         "as many"),
        ("APPS_STDIN", {"input_output": '{"inputs": [1], "outputs": ["1"]}'}, "input_output",
         "text"),
        *(("APPS_CALL", {"input_output": {"fn_name": name, "inputs": [[1]], "outputs": [1]}},
           "input_output", "must be the name of a function")
          for name in (5, " ", "class", "a.b", ["turn"], "turn(x)")),
        ("LIVECODEBENCH_CALL", {"metadata": '{"func_name": "a.b"}'}, "metadata", "the name of a f"),
        ("LIVECODEBENCH_STDIN", {"public_test_cases": [
            {"input": "1", "output": "2", "testtype": "file"}]},
         "public_test_cases.testtype", "functional or stdin"),
        ("MBPP", {"test_list": ["assert remove('a', 'a') == ''", "remove('b', 'b') == ''"]},
         "test_list", "asserts nothing"),
        ("MBPP", {"test_list": ["print(remove('a', 'a'))"]}, "test_list", "asserts nothing"),
        ("MBPP", {"test_list": ["assert (remove('a', 'b') == '', 'no')"]}, "test_list",
         "asserts nothing"),
        ("MBPP", {"challenge_test_list": ["remove('a', 'a')"]}, "challenge_test_list",
         "asserts nothing"),
        ("MBPP", {"test_setup_code": "def remove(s, ch): return s.replace(ch, '', 1)"},
         "test_setup_code", "defines remove, the function under test"),
        ("KODCODE", {"test": f"{FROM}def divide(a, b): return a / b\n"
                             "def test_a():\n    assert divide(4, 2) == 2"}, "test",
         "defines divide, the function under test"),
        ("HUMANEVAL", {"test": "def check(candidate):\n    assert (candidate([]) == 1, 'no')"},
         "test", "asserts nothing"),
        ("HUMANEVAL", {"test": "def check(candidate):\n    candidate([]) == 1"}, "test",
         "asserts nothing"),
        ("KODCODE", {"test": f"{FROM}def test_a():\n    divide(4, 2)"}, "test", "asserts nothing"),
        ("KODCODE", {"test": f"{FROM}@pytest.mark.parametrize('a', [])\ndef test_a(a):\n"
                             "    assert divide(a, 1) == a"}, "test",
         "no test calls divide"),
        ("KODCODE", {"test": f"{FROM}def test_a():\n    assert divide(4, 2) == 2\n"
                             "class TestMore:\n    def test_b(self):\n        assert divide(1, 1)"},
         "test", "is a class of tests"),
        ("KODCODE", {"test": f"{FROM}async def test_a():\n    assert divide(4, 2) == 2"}, "test",
         "is a coroutine"),
        ("KODCODE", {"test": f"{FROM}def setup_function():\n    global x\n    x = 2\n"
                             "def test_a():\n    assert divide(x, 1) == 2"}, "test",
         "set-up of pytest"),
        ("KODCODE", {"test": f"{FROM}from unittest.mock import patch\ndef test_a():\n"
                             "    with patch('solution.help'):\n        assert divide(2, 1) == 2"},
         "test", "solution as a module"),
        ("CODECONTESTS", {"input_file": "in.txt"}, "input_file", "only stdin"),
        ("CODECONTESTS", {"public_tests": {"input": ["1"]}}, "public_tests", "equally long"),
        (
            "CODECONTESTS",
            {"public_tests": None, "private_tests": None, "generated_tests": None},
            "public_tests",
            "without tests",
        ),
        ("LIVECODEBENCH_CALL", {"metadata": "{}"}, "metadata", "func_name"),
        ("LIVECODEBENCH_STDIN", {"public_test_cases": "[]", "private_test_cases": "[]"},
         "public_test_cases", "without tests"),
        ("ACECODE", {"test_cases": []}, "test_cases", "no test"),
        ("KODCODE", {"test": "from solution import A, B\ndef test_a(): pass"}, "test",
         "more than one"),
        ("KODCODE", {"test": "from solution import divide\n"}, "test", "no function test_"),
        ("KODCODE", {"test": "from solution import divide\ndef test_a(tmp_path): pass"}, "test",
         "fixtures"),
        ("KODCODE", {"test": "import pytest\ndef test_a():\n    pytest.skip()"}, "test",
         "pytest.skip"),
        ("KODCODE", {"test": None}, "test_code", "not empty"),
        ("KODCODE", {"solution": "class divide: pass"}, "solution", "only functions"),
        ("CRUXEVAL", {"output": "object()"}, "output", "literal"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_judged_says_why(name, changes, field, part):
    error = refusal({**getattr(rows, name), **changes})
    assert error.field == field
    assert part in error.remedy


@pytest.mark.parametrize(
    ("name", "field", "value", "limits"),
    [
        ("TACO", "time_limit", f"{10**400} seconds", Limits(4.0, 256)),
        ("TACO", "memory_limit", "1e300 megabytes", Limits(2.0)),
        ("CODECONTESTS", "time_limit", {"seconds": 10**400, "nanos": 1}, Limits(None, 245)),
        ("CODECONTESTS", "time_limit", {"seconds": "2", "nanos": 5}, Limits(None, 245)),
        ("CODECONTESTS", "memory_limit_bytes", 10**400, Limits(1.5)),
    ],
)
def test_a_limit_that_no_machine_can_keep_is_none(name, field, value, limits):
    assert read({**getattr(rows, name), field: value}).limits == limits


def test_a_prompt_that_is_no_unicode_is_refused():
    error = refusal({**rows.HUMANEVAL, "prompt": rows.HUMANEVAL["prompt"] + "# \ud800"})
    assert error.field == "prompt" and "parsed" in error.remedy


WITHOUT = {
    "HUMANEVAL": "canonical_solution", "MBPP": "code", "KODCODE": "solution",
    "APPS_CALL": "solutions", "CODECONTESTS": "solutions",
    "PRIMEINTELLECT": "gold_standard_solution", "LEETCODE": "completion",
}  # fmt: skip


@pytest.mark.parametrize("name", WITHOUT)
@pytest.mark.parametrize("how", ["absent", None, "", float("nan")], ids=str)
def test_a_row_without_its_solution_is_a_problem_without_a_reference(name, how):
    row = {key: value for key, value in getattr(rows, name).items() if key != WITHOUT[name]}
    problem = read(row if how == "absent" else {**row, WITHOUT[name]: how})
    assert problem.reference == "" and problem.public_tests


@pytest.mark.parametrize(
    ("name", "field", "written"),
    [
        ("MBPP", "test_list", json.dumps), ("MBPP", "test_list", repr),
        ("ACECODE", "test_cases", json.dumps), ("ACECODE", "test_cases", repr),
        ("CODECONTESTS", "public_tests", repr), ("CODECONTESTS", "solutions", json.dumps),
        ("EVALPLUS", "plus_input", repr), ("KODCODE", "test_info", repr),
        ("APPS_STDIN", "solutions", lambda text: repr(json.loads(text))),
        ("APPS_STDIN", "input_output", lambda text: repr(json.loads(text))),
        ("APPS_STDIN", "solutions", lambda text: json.loads(text)[1]),
        ("LIVECODEBENCH_CALL", "private_test_cases",
         lambda text: "\n".join(text[i : i + 60] for i in range(0, len(text), 60))),
        ("LIVECODEBENCH_CALL", "private_test_cases", lambda _: base64.b64encode(
            zlib.compress(pickle.dumps(rows._PRIVATE, protocol=0))).decode()),
        ("CODECONTESTS", "input_file", lambda _: "stdin"),
        ("CODECONTESTS", "output_file", lambda _: "Standard output"),
    ],
)  # fmt: skip
def test_a_field_that_was_written_as_text_is_the_same(name, field, written):
    row = getattr(rows, name)
    assert read({**row, field: written(row[field])}) == read(row)


def test_missing_cells_of_a_table_are_null():
    nothing = float("nan")
    row = {**rows.MBPP, "test_setup_code": nothing, "challenge_test_list": nothing}
    assert read(row) == read({**row, "test_setup_code": "", "challenge_test_list": []})


def test_assertions_without_check_are_tests(sandbox):
    row = {**rows.HUMANEVAL, "test": "assert total([1, 2]) == 6\nassert total([]) == 0\n"}
    problem = read(row)
    right, wrong = verify(sandbox, [(problem, problem.reference), (problem, "def total(x): pass")])
    assert right.passed and wrong.fraction == 0
    assert "asserts nothing of total" in refusal({**row, "test": "assert other(1) == 2"}).remedy
    unit = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"
    assert "tests in a class" in refusal({**row, "test": unit}).remedy


def test_what_must_not_be_reached_is_a_test(sandbox):
    code = "def half(n):\n    if n % 2: raise ValueError(n)\n    return n // 2"
    odd = "try:\n    half(3)\n    assert False\nexcept ValueError:\n    pass"
    problem = read({**rows.MBPP, "code": code, "test_list": ["assert half(4) == 2", odd],
                    "challenge_test_list": []})  # fmt: skip
    wrong = "def half(n):\n    return n // 2"
    right, other = verify(sandbox, [(problem, code), (problem, wrong)])
    assert right.passed and other.fraction == 0.5


def test_problems_of_other_languages_and_kinds_are_left_out_with_that_reason():
    java = refusal({**rows.HUMANEVAL_X, "task_id": "Java/7"})
    assert (java.field, java.remedy) == ("task_id", "is a problem in Java; only Python is run")
    truth = {"ground_truth": "2", "style": "rule"}
    maths = refusal({**rows.EURUS, "reward_model": truth})
    assert maths.field == "reward_model.ground_truth" and "holds no tests" in maths.remedy
    other = {"language": "rust", "test_cases": []}
    assert "no other is run" in refusal({**rows.PRIMEINTELLECT, "verification_info": other}).remedy
    uneven = json.dumps({"inputs": ["1"], "outputs": []})
    assert refusal({**rows.DEEPCODER, "tests": uneven}).field == "tests"


def test_a_name_that_no_test_uses_is_no_second_function():
    test = rows.KODCODE["test"].replace("import divide", "import divide, helper", 1)
    assert read({**rows.KODCODE, "test": test}).entry_point == "divide"
