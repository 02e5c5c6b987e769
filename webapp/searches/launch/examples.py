"""Problems to paste into the form of a new search, written for Grove; no data set holds them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A problem; `fields` are those of the form."""

    name: str
    title: str
    fields: dict[str, str]


def _example(
    name: str, title: str, statement: str, entry_point: str, public: list[str], private: list[str]
) -> Example:
    tests = {"public_tests": public, "private_tests": private}
    lists = {field: "[" + ",\n ".join(rows) + "]" for field, rows in tests.items()}
    return Example(name, title, {"statement": statement, "entry_point": entry_point, **lists})


SORTED = _example(
    "ascending-order",
    "Ascending order",
    "Write solve(x), which returns the list of integers x in ascending order.",
    "solve",
    ['{"arguments": [[3, 1, 2]], "expected": [1, 2, 3]}'],
    [
        '{"arguments": [[]], "expected": []}',
        '{"arguments": [[2, 2, 1]], "expected": [1, 2, 2]}',
    ],
)
EVEN_SQUARES = _example(
    "even-squares",
    "Squares of the even numbers",
    "Write a Python function even_squares(numbers) that returns the sum of the squares of all even "
    "numbers in the list numbers. For example, even_squares([1, 2, 3, 4]) is 20, because 4 + 16 is "
    "20. For the empty list it is 0.",
    "even_squares",
    [
        '{"arguments": [[1, 2, 3, 4]], "expected": 20}',
        '{"arguments": [[]], "expected": 0}',
    ],
    [
        '{"arguments": [[-2, 5]], "expected": 4}',
        '{"arguments": [[7, 9]], "expected": 0}',
        '{"arguments": [[0, 10, 10]], "expected": 200}',
    ],
)
"""Of 8 answers of SmolLM2 135M, 6 solve it; of the two below few of any model of that size do."""
LONGEST_RUN = _example(
    "longest-run",
    "Longest run of equal items",
    "Write a Python function longest_run(values) that returns the length of the longest run of "
    "equal neighbouring items in the list values. For example, longest_run([4, 4, 7, 7, 7, 4]) is "
    "3, because 7 stands three times in a row. The empty list has no run: longest_run([]) is 0.",
    "longest_run",
    [
        '{"arguments": [[4, 4, 7, 7, 7, 4]], "expected": 3}',
        '{"arguments": [[1, 2, 3]], "expected": 1}',
    ],
    [
        '{"arguments": [[]], "expected": 0}',
        '{"arguments": [[5]], "expected": 1}',
        '{"arguments": [[2, 2, 1, 2, 2, 2, 2]], "expected": 4}',
    ],
)
MISSING_PAGES = _example(
    "missing-pages",
    "Pages missing from a bundle",
    "The pages of a bundle are numbered from 1, and some were lost. Write a Python function "
    "missing_pages(pages, last) that takes the numbers of the pages that are left, in any order, "
    "and the number of the last page of the bundle. It returns the numbers of the lost pages in "
    "ascending order. For example, missing_pages([5, 1, 2], 6) is [3, 4, 6].",
    "missing_pages",
    [
        '{"arguments": [[5, 1, 2], 6], "expected": [3, 4, 6]}',
        '{"arguments": [[1, 2], 2], "expected": []}',
    ],
    [
        '{"arguments": [[], 3], "expected": [1, 2, 3]}',
        '{"arguments": [[2, 2, 1], 4], "expected": [3, 4]}',
    ],
)
EXAMPLES = (SORTED, EVEN_SQUARES, LONGEST_RUN, MISSING_PAGES)
