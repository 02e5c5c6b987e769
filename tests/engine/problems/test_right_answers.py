"""Tests that right answers of published layouts are judged right, and wrong ones wrong."""

import json

import pytest

from engine.problems.check import check
from engine.problems.formats import FORMATS, format_of
from engine.problems.formats.fields import Fields, RowError
from engine.problems.formats.references import usable
from engine.problems.load import load_dataset
from engine.sandbox.host.verify import verify


def apps(solution, tests, function="", starter=""):
    data = {"inputs": [given for given, _ in tests], "outputs": [out for _, out in tests]}
    return {
        "problem_id": 1, "question": "Do it.", "difficulty": "x", "starter_code": starter,
        "solutions": json.dumps([solution]),
        "input_output": json.dumps(({"fn_name": function} if function else {}) | data),
    }  # fmt: skip


def contest(solution, tests):
    part = {"input": [given for given, _ in tests], "output": [out for _, out in tests]}
    nothing = {"input": [], "output": []}
    return {
        "name": "posts", "description": "Do it.", "public_tests": part, "private_tests": nothing,
        "generated_tests": nothing, "solutions": {"language": [3], "solution": [solution]},
        "time_limit": {"seconds": 3, "nanos": 0}, "memory_limit_bytes": 1 << 28,
        "input_file": "", "output_file": "", "cf_tags": [],
    }  # fmt: skip


def lcb(tests, function=""):
    kind = "functional" if function else "stdin"
    cases = [{"input": given, "output": out, "testtype": kind} for given, out in tests]
    return {
        "question_title": "t", "question_content": "Do it.", "question_id": "t", "platform": "p",
        "difficulty": "easy", "starter_code": "class Solution:" if function else "",
        "metadata": json.dumps({"func_name": function} if function else {}),
        "public_test_cases": json.dumps(cases), "private_test_cases": "[]",
    }  # fmt: skip


def human(body, test, prompt="def masts(ships):\n    pass\n", entry="masts"):
    return {"task_id": "h/0", "prompt": prompt, "entry_point": entry, "canonical_solution": body,
            "test": test}  # fmt: skip


def read(row):
    return FORMATS[format_of(row)].problem(Fields(row, 1))


def judged(sandbox, row, program=None):
    problem = read(row)
    (result,) = verify(sandbox, [(problem, problem.reference if program is None else program)])
    return result


METHOD = "class Solution:\n    def f(self, {}):\n        return {}\n"
CALLS = {
    "pow of three arguments": ("a, n", "pow(a, n, 1000)", [[[7, 3], [343]], [[2, 20], [576]]]),
    "pow that is shown": ("a", "'area ' + str(pow(a, 2))", [[[4], ["area 16"]]]),
    "a Counter": ("s", "Counter(s)", [[["rrg"], [{"r": 2, "g": 1}]]]),
    "a defaultdict": ("s", "defaultdict(int, {c: 1 for c in s})", [[["ab"], [{"a": 1, "b": 1}]]]),
    "an OrderedDict": ("s", "OrderedDict.fromkeys(s, 0)", [[["ba"], [{"a": 0, "b": 0}]]]),
    "a named tuple": ("a", "namedtuple('P', 'x y')(a, 2)", [[[1], [[1, 2]]]]),
    "names of the metric": ("s", "[deepcopy(s), ascii_lowercase[:2]]", [[["q"], [["q", "ab"]]]]),
    "a deep recursion": (
        "n", "(lambda g: g(g, n))(lambda g, k: k and 1 + g(g, k - 1))", [[[20000], [20000]]]),
    "a long number": ("n", "3 ** n", [[[2], [9]], [[9500], [3 ** 9500]]]),
    "long numbers in a list": ("n", "[3 ** n, n]", [[[9500], [[3 ** 9500, 9500]]]]),
}  # fmt: skip


@pytest.mark.parametrize("what", CALLS)
def test_results_of_calls_are_judged_as_by_the_metric(sandbox, what):
    arguments, result, tests = CALLS[what]
    row = apps(METHOD.format(arguments, result), tests, "f", "class Solution:")
    assert judged(sandbox, row).passed, judged(sandbox, row)
    wrong = METHOD.format(arguments, f"[{result}, 0]")
    assert not judged(sandbox, row, wrong).passed


SCRIPTS = {
    "names of the metric": ("print(len(collections.Counter(stdin.read().split())))", "a b a", "2"),
    "gcd without its import": ("print(gcd(*map(int, input().split())))", "12 18\n", "6"),
    "a long number": ("print(3 ** int(input()))", "9500\n", str(3**9500)),
    "a long number that is read": ("print(int(input()) - 1)", f"{10**6000}\n", str(10**6000 - 1)),
    "a long number in JSON": (
        "import json\nprint(json.loads(json.dumps(3 ** int(input()))))", "9500\n", str(3**9500)),
    "/dev/stdin": ("print(open('/dev/stdin').readline().strip())", "abc\n", "abc"),
    "/dev/fd/0": ("print(open('/dev/fd/0', 'rb').read().decode().strip())", "abc\n", "abc"),
    "a path": ("import pathlib\nprint(pathlib.Path('/dev/stdin').read_text())", "abc\n", "abc"),
    "a descriptor": (
        "import os\nprint(os.read(os.open('/dev/stdin', os.O_RDONLY), 9).decode())", "abc", "abc"),
    "/dev/stdout": ("open('/dev/stdout', 'w').write(input())", "abc\n", "abc"),
    "other files still open": (
        "try: open('/dev/nothing')\nexcept OSError: print(input())", "abc\n", "abc"),
    "a deep recursion": (
        "import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return n and 1 + f(n - 1)\n"
        "print(f(int(input())))", "100000\n", "100000"),
    "a deep recursion through a built-in function": (
        "import sys, functools\nsys.setrecursionlimit(10**6)\n@functools.lru_cache(None)\n"
        "def f(n): return n and 1 + f(n - 1)\nprint(f(int(input())))", "40000\n", "40000"),
    "a deep recursion in a thread": (
        "import sys, threading\nsys.setrecursionlimit(10**6)\nthreading.stack_size(1 << 26)\n"
        "def f(n): return n and 1 + f(n - 1)\n"
        "t = threading.Thread(target=lambda: print(f(int(input()))))\nt.start()\nt.join()",
        "100000\n", "100000"),
}  # fmt: skip


@pytest.mark.parametrize("what", SCRIPTS)
def test_scripts_find_what_judges_give_them(sandbox, what):
    program, given, expected = SCRIPTS[what]
    row = apps(program, [[given, expected]])
    assert judged(sandbox, row).passed, judged(sandbox, row)
    assert not judged(sandbox, apps(program, [[given, expected + "1"]])).passed


OUTPUTS = [
    # format, printed, expected, right
    (contest, "Open", "OPEN\n", True),
    (contest, "0 2 4", "0\n2\n4\n", True),
    (contest, "     41", "41", True),
    (contest, "0.333334", "0.333333", True),
    (contest, "1e2 x", "100 X", True),
    (contest, "0.3334", "0.3333", False),
    (contest, "1000000000123.5", "1000000000000.5", False),
    (contest, "100000000000000001", "100000000000000000", False),
    (contest, "1 2", "1 2 3", False),
    (contest, "Shut", "OPEN", False),
    (lcb, "  1  \n 2", "1\n2", True),
    (lcb, "1.0", "1.00", True),
    (lcb, "1e3 +5 005", "1000 5 5", True),
    (lcb, "1000000000123.5", "1000000000000.5", False),
    (lcb, "0.1000000001", "0.1", False),
    (lcb, "1\n\n2", "1\n2", False),
    (lcb, "1 2", "1\n2", False),
    (lcb, "Open", "OPEN", False),
    (lcb, "x 1.0", "x 1.00", False),
    (apps, "  1  \n\n 2", "1\n2", True),
    (apps, "1e-05", "0.00001", True),
    (apps, "0.00001", "1e-05", True),
    (apps, "+5 005", "5 5", True),
    (apps, "12345678901234567890.0", "12345678901234567891", False),
    (apps, "a\x0cb", "a\x0cb", True),
    (apps, "1\u2028" + "2", "1\n2", False),
    (apps, "Open", "OPEN", False),
    (apps, "9" * 5000, "9" * 5000, True),
    (apps, "9" * 4999 + "8", "9" * 5000, False),
    (apps, "0.5 " + "9" * 4999 + "8", "0.5 " + "9" * 5000, False),
]


@pytest.mark.parametrize("format, printed, expected, right", OUTPUTS)
def test_printed_texts_are_compared_as_by_the_data_sets_own_checker(
    sandbox, format, printed, expected, right
):
    program = f"print({printed!r})"
    row = format([["1\n", expected]]) if format is lcb else format(program, [["1\n", expected]])
    assert judged(sandbox, row, program).passed is right


def test_check_may_be_called_from_a_function(sandbox):
    check = "def check(candidate):\n    assert candidate(1) == 2\n    assert candidate(6) == 12\n"
    for call in (
        "def test_check():\n    check(masts)\n\ntest_check()\n",
        "def test_check():\n    check(masts)\n",
        "def test(): check(masts)\ndef main(): test()\nif __name__ == '__main__':\n    main()\n",
        "check(masts)\n",
    ):
        row = human("    return 2 * ships\n", check + call, "def masts(ships):\n")
        assert len(read(row).private_tests) == 1 and judged(sandbox, row).passed
        assert not judged(sandbox, row, "def masts(ships): return 2").passed


def test_withheld_solutions_are_unverified_and_not_failed(sandbox, tmp_path):
    file = tmp_path / "rows.jsonl"
    test = "def check(candidate):\n    assert candidate(1) == 2\n"
    mbpp = {"task_id": 1, "text": "Double.", "code": "", "test_list": ["assert twice(2) == 4"]}
    for row in (human("", test), human("  \n", test), human(None, test), mbpp):
        file.write_text(json.dumps(row))
        report = check(load_dataset(file), lambda pairs: verify(sandbox, pairs))
        assert not report.failed and len(report.unverified) == 1
        assert report.unverified[0].reason == "the data set has no reference for it"


def test_tests_of_two_functions_are_left_out_with_that_reason():
    code = "def pack(xs): return '-'.join(xs)\ndef unpack(s): return s.split('-')\n"
    row = {
        "task_id": 1,
        "text": "Pack.",
        "code": code,
        "test_list": ["assert pack(['a']) == 'a'", "assert unpack(pack(['a'])) == ['a']"],
    }
    with pytest.raises(RowError, match=r"calls pack and unpack of the solution; only one"):
        read(row)


ITERATORS = {
    "a generator": ("for i in range(n): yield i * 2", "list(candidate(3)) == [0, 2, 4]"),
    "a map": ("return map(str, range(n))", "list(candidate(2)) == ['0', '1']"),
    "a zip": ("return zip(range(n), 'abc')", "dict(candidate(2)) == {0: 'a', 1: 'b'}"),
    "a first item": ("return (i for i in range(n))", "next(candidate(2)) == 0"),
    "keys": ("return {1: 2, 3: 4}.keys()", "candidate(0) == {1, 3}"),
    "values": ("return {1: 2, 3: 4}.values()", "sorted(candidate(0)) == [2, 4]"),
    "items": ("return {1: 2}.items()", "candidate(0) == {(1, 2)}"),
    "a range": ("return range(0, n, 2)", "candidate(5) == range(0, 6, 2)"),
    "a permutation": ("import itertools\n    return itertools.permutations([1, 2])",
                      "list(candidate(0)) == [(1, 2), (2, 1)]"),
    "a Counter": ("from collections import Counter\n    return Counter('aab')",
                  "candidate(0) == {'a': 2, 'b': 1}"),
    "a member": ("import enum\n    return enum.IntEnum('E', 'A B')(2)", "candidate(0) == 2"),
}  # fmt: skip


@pytest.mark.parametrize("what", ITERATORS)
def test_asserts_may_iterate_what_a_solution_returns(sandbox, what):
    body, claim = ITERATORS[what]
    test = f"def check(candidate):\n    assert {claim}\n"
    row = human(f"    {body}\n", test, "def masts(n):\n")
    assert judged(sandbox, row).passed, judged(sandbox, row)
    # What is no list is equal to none, as in the data set's own test.
    other = human(f"    {body}\n", "def check(candidate):\n    assert candidate(3) == [0, 2, 4]\n",
                  "def masts(n):\n")  # fmt: skip
    assert not judged(sandbox, other).passed


def test_items_of_one_iterator_are_taken_in_their_order(sandbox):
    test = (
        "def check(candidate):\n    items = candidate(3)\n    assert next(items) == 0\n"
        "    assert next(items) == 2\n"
    )
    row = human("    for i in range(n): yield i * 2\n", test, "def masts(n):\n")
    assert judged(sandbox, row).passed
    assert not judged(sandbox, row, "def masts(n): return iter([0, 0])").passed


def test_methods_of_unittest_are_assertions(sandbox):
    test = (
        "def check(candidate):\n    import unittest\n    case = unittest.TestCase()\n"
        "    case.assertEqual(candidate(1), 2)\n"
    )
    row = human("    return 2 * ships\n", test, "def masts(ships):\n")
    assert judged(sandbox, row).passed
    assert not judged(sandbox, row, "def masts(ships): return ships").passed


def test_an_endless_iterator_is_over_the_output_limit(sandbox):
    test = "def check(candidate):\n    assert list(candidate(1)) == [1]\n"
    row = human("    while True: yield 1\n", test, "def masts(n):\n")
    assert judged(sandbox, row).verdict.value == "output_limit"


def test_lines_of_a_prompt_are_those_that_python_counts(sandbox):
    prompt = 'FEED = "\x0c"\nMARK = "\u2028\x85"\n\ndef masts(ships):\n'
    test = "def check(candidate):\n    assert candidate(1) == 3\n"
    row = human("    return len(FEED + MARK)\n", test, prompt)
    assert read(row).prelude == 'FEED = "\x0c"\nMARK = "\u2028\x85"'
    assert judged(sandbox, row).passed


def test_a_solution_with_a_byte_order_mark_is_usable():
    program = "#!/usr/bin/env python3\nprint(int(input()) * 2)\n"
    assert usable(["print 1", f"\ufeff{program}", program], "") == (program, ())


def test_a_later_solution_takes_the_place_of_a_wrong_first_one(sandbox, tmp_path):
    wrong, right = "print(int(input()) * 2)\n", "print(int(input()) + 1)\n"
    row = apps(wrong, [["1\n", "2\n"], ["5\n", "6\n"]])
    file = tmp_path / "rows.jsonl"
    for solutions, passed in (([wrong, "print(", right], True), ([wrong, wrong], False)):
        file.write_text(json.dumps(row | {"solutions": json.dumps(solutions)}))
        report = check(load_dataset(file), lambda pairs: verify(sandbox, pairs))
        assert bool(report.passed) is passed
        assert [one.reference for one in report.passed] == [right][: len(report.passed)]
        assert len(report.failed) == (not passed)


def test_a_folder_of_several_layouts_has_one_line_for_each_other_file(tmp_path):
    test = "def check(candidate):\n    assert candidate(1) == 2\n"
    mine = [human("    return 2 * ships\n", test) | {"task_id": f"h/{n}"} for n in range(3)]
    other = [contest("print(1)", [["1", "1"]]) | {"name": f"c{n}"} for n in range(50)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, mine)))
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, other)))
    (tmp_path / "c.json").write_text(json.dumps([{"x": n} for n in range(50)]))
    loaded = load_dataset(tmp_path)
    assert loaded.format == "humaneval" and len(loaded.left_out) == 2 + 2
    files = sorted(map(str, loaded.left_out), key=lambda text: "layout" in text)[2:]
    assert "b.jsonl" in files[0] and "is of the layout codecontests" in files[0]
    assert "c.json" in files[1] and "of a layout that is not known" in files[1]


@pytest.mark.parametrize(
    "row",
    [
        human("    ships.sort()\n", "def check(candidate):\n    x = [2, 1]\n    candidate(x)\n"
              "    assert x == [1, 2]\n", "def masts(ships):\n"),
        {"task_id": 1, "text": "Sort.", "code": "def order(x): x.sort()",
         "test_list": ["x = [2, 1]\norder(x)\nassert x == [1, 2]"]},
    ],
)  # fmt: skip
def test_tests_of_what_a_function_changes_are_left_out_with_that_reason(row):
    with pytest.raises(RowError, match="to change its argument x; only results are judged"):
        read(row)


def test_tests_that_an_argument_stays_as_it_was_are_judged(sandbox):
    test = (
        "def check(candidate):\n    x = [2, 1]\n    assert candidate(x) == [1, 2]\n"
        "    assert x == [2, 1]\n    try:\n        candidate(None)\n"
        "    except TypeError:\n        x = 0\n    assert candidate([x]) == [0]\n"
    )
    assert judged(sandbox, human("    return sorted(ships)\n", test, "def masts(ships):\n")).passed


LIBRARY = {
    # solution, what an assertion says of its result, what it must not say
    "a Fraction": ("return Fraction(1, n)", "candidate(2) == Fraction(1, 2)", "candidate(2) == 1"),
    "a Fraction as a number": ("return Fraction(1, n)", "candidate(2) == 0.5",
                               "candidate(3) == 0.5"),
    "a Decimal": ("return Decimal('1.10')", "candidate(0) == Decimal('1.1')",
                  "candidate(0) == 1.1"),
    "Fractions in a list": ("return [Fraction(n, 3), 1]", "candidate(1) == [Fraction(1, 3), 1]",
                            "candidate(1) == [0.3, 1]"),
    "a Counter's methods": ("return Counter('aab')", "candidate(0).most_common(1) == [('a', 2)]",
                            "candidate(0) == {'a': 2}"),
    "a Counter's zero": ("return Counter('aab')", "candidate(0)['z'] == 0",
                         "candidate(0)['a'] == 0"),
    "an order": ("return OrderedDict([(1, 2), (3, 4)])",
                 "candidate(0) == OrderedDict([(1, 2), (3, 4)])",
                 "candidate(0) == OrderedDict([(3, 4), (1, 2)])"),
    "a dict for an order": ("return OrderedDict(a=1)", "candidate(0) == {'a': 1}",
                            "candidate(0) == {}"),
    "a deque": ("return deque([1, n])", "candidate(2) == deque([1, 2])", "candidate(2) == [1, 2]"),
    "a deque's end": ("return deque([1, n], 2)", "candidate(2).pop() == 2",
                      "candidate(2).maxlen == 1"),
    "a date": ("return date(2020, 2, n)", "candidate(3) == date(2020, 2, 3)",
               "candidate(3) == date(2020, 3, 2)"),
    "a time span": ("return timedelta(0, n)", "candidate(3).seconds == 3",
                    "candidate(3) == timedelta(3)"),
    "a bytearray": ("return bytearray(b'a')", "candidate(0) == b'a'", "candidate(0) == 'a'"),
    "bytes": ("return b'a' * n", "candidate(2) == b'aa'", "candidate(2) == 'aa'"),
    "a range in a list": ("return [range(n)]", "candidate(2) == [range(2)]",
                          "candidate(2) == [[0, 1]]"),
    "iterators in a list": ("return [map(str, [n]), zip([1], [2])]",
                            "[list(x) for x in candidate(3)] == [['3'], [(1, 2)]]",
                            "candidate(3) == [['3'], [(1, 2)]]"),
    "Counters in a dict": ("return {n: Counter('a')}", "candidate(1) == {1: {'a': 1}}",
                           "candidate(1) == {1: {}}"),
    "a defaultdict in a list": ("return [defaultdict(int, a=1)]", "candidate(0) == [{'a': 1}]",
                                "candidate(0) == [{}]"),
    "a named tuple in a list": ("return [namedtuple('P', 'x y')(1, 2)]", "candidate(0) == [(1, 2)]",
                                "candidate(0) == [[1, 2]]"),
    "a named text": ("import enum\n    return enum.Enum('E', {'A': 'red'}, type=str).A",
                     "candidate(0) == 'red'", "candidate(0) == 'E.A'"),
    "views in a list": ("return [{1: 2}.keys(), {1: 2}.items()]",
                        "candidate(0) == [{1}, {(1, 2)}]", "candidate(0) == [[1], [(1, 2)]]"),
    "a set of Fractions": ("return {Fraction(1, 2)}", "candidate(0) == {0.5}",
                           "candidate(0) == {1}"),
}  # fmt: skip
IMPORTS = (
    "from collections import *\nfrom datetime import *\nfrom decimal import *\n"
    "from fractions import *\n"
)


def test_results_of_the_librarys_classes_are_judged_by_equality(sandbox):
    rows = []
    for body, right, wrong in LIBRARY.values():
        for claim in (right, wrong):
            test = f"{IMPORTS}def check(candidate):\n    assert {claim}\n"
            rows.append(human(f"    {body}\n", test, f"{IMPORTS}\ndef masts(n):\n"))
    pairs = [(problem := read(row), problem.reference) for row in rows]
    passed = [one.passed for one in verify(sandbox, pairs)]
    for name, right, wrong in zip(LIBRARY, passed[::2], passed[1::2], strict=True):
        assert (right, wrong) == (True, False), name


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("Fraction(1, 2)", 0.5),
        ("Decimal('2.50')", 2.5),
        ("Fraction(4, 2)", 2),
        ("[Decimal(3)]", [3]),
    ],
)
def test_numbers_of_the_library_are_the_numbers_that_they_equal(sandbox, result, expected):
    method = f"from fractions import Fraction\nfrom decimal import Decimal\n{METHOD}"
    row = apps(method.format("a", result), [[[1], [expected]]], "f", "class Solution:")
    assert judged(sandbox, row).passed
    program = method.format("a", "Fraction(1, 3)")
    for wrong in ([[1], [expected]], [[1], [1 / 3]]):
        assert not judged(sandbox, apps(program, [wrong], "f", "class Solution:"), program).passed


POINT = (
    "class Point:\n    def __init__(self, x): self.x = x\n    def __eq__(self, o): return True\n"
)


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("assert at(1) == Point(1)", "compares objects of the solution's class Point"),
        ("assert [at(1)] == [Point(1)]", "compares objects of the solution's class Point"),
        ("p = Point(1)\nassert at(1) == p", "compares objects of the solution's class Point"),
        ("assert isinstance(at(1), Point)", "compares objects of the solution's class Point"),
        ("assert type(at(1)) is Point", "compares objects of the solution's class Point"),
        ("assert at(1).x == 1", "reads .x of what at returns"),
        ("p = at(1)\nassert p.x == 1", "reads .x of what at returns"),
    ],
)
def test_tests_of_objects_of_own_classes_are_left_out_with_that_reason(test, reason):
    code = f"{POINT}def at(x): return Point(x)\n"
    row = {"task_id": 1, "text": "Point.", "code": code, "test_list": [test]}
    lines = test.replace("\n", "\n    ")
    kodcode = {
        "question_id": "1", "question": "Point.", "solution": code,
        "test": f"from solution import at\n\ndef test_at():\n    {lines}\n",
    }  # fmt: skip
    body = f"def check(candidate):\n    {lines.replace('at(', 'candidate(')}\n"
    humaneval = human("    return Point(x)\n", body, "def at(x):\n    pass\n", "at")
    acecode = {"id": "1", "question": "Point.", "test_cases": [test], "inferences": []}
    for one in (row, kodcode, acecode):
        with pytest.raises(RowError, match=reason):
            read(one)
    with pytest.raises(RowError, match=reason.replace(" at ", " candidate ")):
        read(humaneval)


def test_objects_that_are_passed_and_names_of_the_test_are_judged(sandbox):
    code = f"{POINT}def at(p): return p.x\n"
    for test in (
        "assert at(Point(3)) == 3",
        "p = Point(3)\np.y = 2\nassert at(p) == 3 and p.y == 2",
        "X = 3\nassert at(Point(X)) == X",
        "from fractions import Fraction\nassert at(Point(3)) == Fraction(3)",
    ):
        row = {"task_id": 1, "text": "Point.", "code": code, "test_list": [test]}
        assert judged(sandbox, row).passed, test


@pytest.mark.parametrize(
    "test",
    [
        "x = [2, 1]\nassert order(x) is None\nassert x == [1, 2]",
        "x = [2, 1]\nassert order(x) == None and x == [1, 2]",
        "x = [2, 1]\n_ = order(x)\nassert x == [1, 2]",
        "x = [2, 1]\nresult = order(x)\nassert x[0] == 1",
    ],
)
def test_other_tests_of_changes_in_place_are_left_out_with_that_reason(test):
    row = {"task_id": 1, "text": "Sort.", "code": "def order(x): x.sort()", "test_list": [test]}
    with pytest.raises(RowError, match="to change its argument x; only results are judged"):
        read(row)
