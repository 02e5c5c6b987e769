"""Choice of one reference among many solutions.

Invariant: the chosen reference parses as Python 3 and defines the entry point.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

# Imports that the judges of LeetCode and Codewars, and the metrics of APPS and LiveCodeBench, run
# before a solution: solutions, and models, leave these lines out.
USUAL_IMPORTS = """\
import bisect, collections, copy, datetime, fractions, functools, heapq, itertools, math, operator
import random, re, statistics, string, sys
from bisect import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import *
from typing import *
"""


def first_usable(solutions: Iterable[str], entry_point: str) -> str:
    """Returns the first solution that parses and defines the entry point; empty if none does."""
    return next((text for text in solutions if _defines(text, entry_point)), "")


def method_or_function(name: str, *programs: str) -> str:
    """Returns `Solution.name` if the first non-blank program defines a class `Solution`, else
    `name`."""
    for program in programs:
        if program.strip():
            return f"Solution.{name}" if "class Solution" in program else name
    return name


def _defines(program: str, entry_point: str) -> bool:
    try:
        body = ast.parse(program).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    owner, _, name = entry_point.rpartition(".")
    if owner:
        body = [n for n in body if isinstance(n, ast.ClassDef) and n.name == owner][-1:]
        body = body[0].body if body else []  # type: ignore[attr-defined]
    return not name or name in _names(body)


def _names(body: list[ast.stmt]) -> set[str]:
    names = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names
