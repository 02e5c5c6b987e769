"""One small row per published format, with the fields and the nesting of the real ones."""

import base64
import json
import pickle
import zlib

HUMANEVAL = {
    "task_id": "HumanEval/900",
    "prompt": (
        "from typing import List\n\n\ndef double(x: int) -> int:\n    return 2 * x\n\n\n"
        "def total(numbers: List[int]) -> int:\n"
        '    """ Sum of the doubled numbers.\n    >>> total([1, 2])\n    6\n    """\n'
    ),
    "entry_point": "total",
    "canonical_solution": "    return sum(double(n) for n in numbers)\n",
    "test": (
        "\n\nMETADATA = {'author': 'x'}\n\n\ndef check(candidate):\n    import random\n"
        "    assert candidate([]) == 0\n    assert candidate([1, 2]) == 6, 'Test 2'\n"
        "    assert True, 'This prints if this assert fails'\n"
        "    for _ in range(3):\n        n = random.randint(0, 9)\n"
        "        assert candidate([n]) == double(n)\n"
    ),
}
HUMANEVAL_PLUS_TABLE = {
    **HUMANEVAL,
    "test": (
        "import numpy as np\n\ndef is_floats(x) -> bool:\n    if isinstance(x, float):\n"
        "        return True\n    if isinstance(x, np.ndarray):\n"
        "        return x.dtype == np.float64\n    return False\n\n"
        "def assertion(out, exp, atol):\n    exact_match = out == exp\n"
        "    if atol == 0 and is_floats(exp):\n        atol = 1e-6\n"
        "    if not exact_match and atol != 0:\n"
        "        np.testing.assert_allclose(out, exp, rtol=1e-07, atol=atol)\n"
        "    else:\n        assert exact_match\n\n"
        "def check(candidate):\n    inputs = "
        + repr([[[n]] for n in range(60)])
        + "\n    results = "
        + repr([2 * n for n in range(60)])
        + "\n    for i, (inp, exp) in enumerate(zip(inputs, results)):\n"
        "        assertion(candidate(*inp), exp, 0)\n"
    ),
}
EVALPLUS = {
    "task_id": "HumanEval/901",
    "prompt": (
        'def half(x: float) -> float:\n    """ Half of x.\n    >>> half(3.0)\n    1.5\n    """\n'
    ),
    "entry_point": "half",
    "canonical_solution": "    return x / 2\n",
    "contract": "    assert type(x) == float",
    "base_input": [[3.0], [1.5]],
    "plus_input": [[float(n)] for n in range(40)],
    "atol": 0,
}
MBPP_PLUS = {
    "task_id": "Mbpp/2",
    "prompt": (
        '"""\nFind the shared elements.\nassert similar_elements((3, 4), (4, 5)) == (4,)\n"""\n'
    ),
    "entry_point": "similar_elements",
    "canonical_solution": "\ndef similar_elements(a, b):\n    return tuple(set(a) & set(b))\n",
    "base_input": [[[3, 4], [4, 5]], [[1, 2], [5, 4]]],
    "plus_input": [[[], []], [[1, 2, 3], [3, 2]]],
    "atol": 0,
}
MBPP_PLUS_NUMBERED = {**MBPP_PLUS, "task_id": 2, "prompt": "'''\nFind the shared elements.\n'''"}
MBPP = {
    "task_id": 11,
    "text": "Write a python function to remove the first occurrence of a character.",
    "code": "def remove(s, ch):\n    return s.replace(ch, '', 1)",
    "test_list": [
        'assert remove("hello","l") == "helo"',
        'assert remove("abcda","a") == "bcda"',
        'assert remove("PHP","P") == "HP"',
    ],
    "test_setup_code": "",
    "challenge_test_list": ['assert remove("x","y") == "x"'],
}
MBPP_CLASSES = {
    "task_id": 12,
    "text": "Write a function to sum the values of a list of linked nodes.",
    "code": (
        "class Node:\r\n\tdef __init__(self, value):\r\n\t\tself.value, self.next = value, None\r\n"
        "def total(node):\r\n\treturn 0 if node is None else node.value + total(node.next)"
    ),
    "test_list": ["assert (total(one)) == 7", "assert (total(two)) == 9 "],
    "test_setup_code": (
        "one = Node(3) \r\none.next = Node(4) \r\ntwo = Node(2); \r\ntwo.next = Node(7); "
    ),
    "challenge_test_list": [],
}
MBPP_SANITIZED = {
    "source_file": "Benchmark Questions.ipynb",
    "task_id": 82,
    "prompt": "Write a function to find the volume of a sphere.",
    "code": "import math\ndef volume_sphere(r):\n  return (4/3)*math.pi*r*r*r",
    "test_imports": ["import math"],
    "test_list": [
        "assert math.isclose(volume_sphere(10), 4188.790204786391, rel_tol=0.001)",
        "assert math.isclose(volume_sphere(25), 65449.84694978735, rel_tol=0.001)",
        "assert math.isclose(volume_sphere(20), 33510.321638291124, rel_tol=0.001)",
    ],
}
MBPP_PLUS_TABLE = {
    **MBPP_SANITIZED,
    "task_id": 83,
    "test": (
        "import numpy as np\nfrom math import inf\n\ndef assertion(out, exp, atol):\n"
        "    assert out == exp or np.allclose(out, exp, rtol=1e-07, atol=1e-6)\n\n"
        "inputs = [[0], [1.5]]\nresults = [0.0, 14.137166941154069]\n"
        "for i, (inp, exp) in enumerate(zip(inputs, results)):\n"
        "    assertion(volume_sphere(*inp), exp, 0)\n"
    ),
}
APPS_STDIN = {
    "problem_id": 7,
    "question": (
        "Add two numbers.\n\n-----Input-----\n\nTwo numbers.\n\n-----Examples-----\n"
        "Input\n1 2\n\nOutput\n3\n"
    ),
    "solutions": json.dumps(["print 'python 2'", "a, b = map(int, input().split())\nprint(a + b)"]),
    "input_output": json.dumps(
        {
            "inputs": ["5 6\n", "1 2\n", ["7 8"]],
            "outputs": ["11\n", "3\n", ["15"]],
        }
    ),
    "difficulty": "introductory",
    "url": "https://example.org/7",
    "starter_code": "",
}
APPS_CALL = {
    "problem_id": 8,
    "question": "Count the keys.",
    "solutions": json.dumps(
        [
            "class Solution:\n    def count(self, d: Dict[int, int], k: int) -> int:\n"
            "        return len(d) + k"
        ]
    ),
    "input_output": json.dumps(
        {"fn_name": "count", "inputs": [[{"1": 2}, 1], [{}, 0]], "outputs": [[2], 0]}
    ),
    "difficulty": "interview",
    "url": "",
    "starter_code": (
        "class Solution:\n    def count(self, d: Dict[int, int], k: int) -> int:\n        "
    ),
}
TACO = {
    **APPS_STDIN,
    "question": "Halve a number.",
    "solutions": json.dumps(["print(float(input()) / 2)"]),
    "input_output": json.dumps({"inputs": ["3", "4"], "outputs": ["1.5000001", "2.0"]}),
    "difficulty": "EASY",
    "raw_tags": "['math']",
    "skill_types": "['Bit manipulation']",
    "time_limit": "2.0 seconds",
    "memory_limit": "256.0 megabytes",
    "Expected Time Complexity": None,
    "source": "codeforces",
}
del TACO["problem_id"]
CODECONTESTS = {
    "name": "1_A. Theatre",
    "description": "Print the larger number.",
    "public_tests": {"input": ["1 2\n"], "output": ["2\n"]},
    "private_tests": {"input": ["9 3\n"], "output": ["9\n"]},
    "generated_tests": {"input": ["4 4\n"], "output": ["4\n"]},
    "source": 2,
    "difficulty": 7,
    "solutions": {
        "language": [2, 1, 3],
        "solution": ["int main(){}", "print max(1, 2)", "print(max(map(int, input().split())))"],
    },
    "incorrect_solutions": {"language": [3], "solution": ["print(1)"]},
    "cf_tags": ["math"],
    "time_limit": {"seconds": 1, "nanos": 500000000},
    "memory_limit_bytes": 256000000,
    "input_file": "",
    "output_file": "",
}
_PRIVATE = json.dumps([{"input": "[4, 5]\n3", "output": "[5, 4]", "testtype": "functional"}])
LIVECODEBENCH_CALL = {
    "question_title": "turn",
    "question_content": "Turn the list k times.",
    "platform": "leetcode",
    "question_id": "2777",
    "contest_id": "weekly-1",
    "contest_date": "2023-08-21T00:00:00",
    "starter_code": (
        "class Solution:\n    def turn(self, nums: List[int], k: int) -> List[int]:\n        "
    ),
    "difficulty": "easy",
    "public_test_cases": json.dumps(
        [{"input": "[1, 2]\n1", "output": "[2, 1]", "testtype": "functional"}]
    ),
    "private_test_cases": base64.b64encode(zlib.compress(pickle.dumps(_PRIVATE))).decode(),
    "metadata": '{"func_name": "turn"}',
}
LIVECODEBENCH_STDIN = {
    **LIVECODEBENCH_CALL,
    "question_id": "abc301_a",
    "platform": "atcoder",
    "starter_code": "",
    "public_test_cases": '[{"input": "1\\n", "output": "2\\n", "testtype": "stdin"}]',
    "private_test_cases": '[{"input": "4\\n", "output": "5\\n", "testtype": "stdin"}]',
    "metadata": "{}",
}
ACECODE = {
    "id": "oss_1",
    "source": "oss",
    "question": "Write `triple(x)`. For example triple(2) gives 6.",
    "test_cases": ["assert triple(0) == 0", "assert triple(2) == 6", "assert triple(-1) == -3"],
    "inferences": [
        {"model_name": "m", "completion_id": 0, "completion": "no", "pass_rate": 0.5},
        {
            "model_name": "m",
            "completion_id": 1,
            "pass_rate": 1.0,
            "completion": "So:\n```python\ndef triple(x):\n    return 3 * x\n```",
        },
    ],
    "context_messages": [],
}
KODCODE = {
    "style": "instruct",
    "subset": "Leetcode",
    "question_id": "Leetcode_1_I",
    "question": "Write a function that divides, and refuses zero.",
    "solution": (
        "def divide(a, b):\n    if b == 0:\n        raise ValueError('zero')\n    return a / b"
    ),
    "test": (
        "from solution import divide\nimport pytest\n\nCASES = [(4, 2, 2)]\n\n"
        "def test_whole():\n    for a, b, c in CASES:\n        assert divide(a, b) == c\n\n"
        "def test_part():\n    assert divide(1, 3) == pytest.approx(0.3333333)\n\n"
        "@pytest.mark.parametrize('a, c', [(6, 3), (8, 4)])\ndef test_two(a, c):\n"
        "    assert divide(a, 2) == c\n\n"
        "def test_zero():\n    from solution import divide\n"
        "    with pytest.raises(ValueError, match='zer'):\n        divide(1, 0)\n"
    ),
    "test_info": [{"docstring": "", "function_declaration": "def divide(a, b):",
                   "function_name": "divide", "parameter_list": "(a, b)"}],
    "gpt_difficulty": "easy",
}  # fmt: skip
CRUXEVAL = {
    "code": "def f(text, n):\n    return (text * n, len(text))",
    "input": "'ab', 2",
    "output": "('abab', 2)",
    "id": "sample_0",
}
CRUXEVAL_CALL = {
    "code": "base = [3, 1]\ndef f(items, key):\n    return sorted(items, key=key)",
    "input": "base[:], lambda x: x",
    "output": "[1, 3]",
    "id": "sample_1",
}
HUMANEVAL_X = {
    "task_id": "Python/7",
    "prompt": 'def total(values):\n    """ Sum. """\n',
    "declaration": "def total(values):\n",
    "canonical_solution": "    return sum(values)\n",
    "test": (
        "def check(total):\n    assert total([1, 2]) == 3\n    assert total([]) == 0\n\n"
        "check(total)\n"
    ),
    "example_test": "def check(total):\n    assert total([]) == 0\ncheck(total)\n",
}
_CASES = [
    {"type": "stdin_stdout", "fn_name": None, "input": "2\n", "output": "6\n"},
    {"type": "stdin_stdout", "fn_name": None, "input": "5\n", "output": "15\n"},
]
PRIMEINTELLECT = {
    "problem_id": "vcp_3",
    "source": "apps",
    "task_type": "verifiable_code",
    "prompt": "Multiply the number by three.",
    "gold_standard_solution": "```python\nprint(3 * int(input()))\n```",
    "verification_info": str({"language": "python", "test_cases": _CASES}),
    "metadata": "{}",
}
DEEPCODER = {
    "problem": "Print three times the number.",
    "solutions": ["```python\nprint(3 * int(input()))\n```"],
    "tests": json.dumps({"inputs": ["2\n", "5\n"], "outputs": ["6\n", "15\n"]}),
}
DEEPCODER_CASES = {**DEEPCODER, "problem": "Treble the number.", "tests": json.dumps(_CASES)}
DEEPCODER_CALL = {
    "problem": "Return three times the number.",
    "starter_code": "class Solution:\n    def thrice(self, n: int) -> int:\n        ",
    "tests": json.dumps(
        [
            {"input": i, "output": o, "testtype": "functional", "metadata": {"func_name": "thrice"}}
            for i, o in (("2", "6"), ("5", "15"))
        ]
    ),
}
EURUS = {
    "data_source": "taco",
    "prompt": [
        {"role": "system", "content": "Think."},
        {"role": "user", "content": "Print thrice the number.\n\nWrite Python code."},
    ],
    "ability": "code",
    "reward_model": {"ground_truth": DEEPCODER["tests"], "style": "rule"},
    "extra_info": {"split": "train", "index": 3},
}
RSTAR = {
    "question_id": "seed_5",
    "question": "Print the threefold of the number.",
    "starter_code": "",
    "inputs": json.dumps(["2\n", "5\n"]),
    "outputs": json.dumps(["6\n", "15\n"]),
    "is_synthesized": "[0, 0]",
    "func_name": "",
}
LEETCODE = {
    "task_id": "three-times",
    "question_id": 9,
    "difficulty": "Easy",
    "tags": ["Math"],
    "problem_description": "Return three times the number.",
    "starter_code": "class Solution:\n    def thrice(self, n: int) -> int:\n        ",
    "prompt": "import math\nfrom typing import *\n",
    "completion": "class Solution:\n    def thrice(self, n: int) -> int:\n        return 3 * n",
    "entry_point": "Solution().thrice",
    "test": (
        "def check(candidate):\n    assert candidate(n = 2) == 6\n"
        "    assert candidate(n = 5) == 15\n"
    ),
}
