"""Choice of one reference among many solutions.

Invariant: the chosen reference parses as Python 3 and defines the entry point.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import islice

USUAL_IMPORTS = """\
from string import *
from re import *
from datetime import *
from collections import *
from heapq import *
from bisect import *
from copy import *
from math import *
from random import *
from statistics import *
from itertools import *
from functools import *
from operator import *
from io import *
from sys import *
from json import *
from builtins import *
from typing import *
import bisect, collections, copy, datetime, fractions, functools, heapq, io, itertools, json, math
import operator, random, re, statistics, string, sys, time
sys.setrecursionlimit(50000)
"""
"""What judges run before a solution, so that solutions, and models, leave these lines out: the
names and the limit of LiveCodeBench's metric (lcb_runner/evaluation/testing_util.py,
`import_string`), and the further modules of that of APPS (eval/testing_util.py). The built-ins come
after all names that would hide them: `pow` has three arguments, and `open` opens a file."""


MOST_TRIED = 8
"""Solutions of a problem that are kept: published lists begin with wrong ones, rarely with many."""


def usable(solutions: Iterable[str], entry_point: str) -> tuple[str, tuple[str, ...]]:
    """Returns the first solution that parses and defines the entry point, empty if none does, and
    the next few that do; without a byte order mark, which Python takes only at a file's start."""
    plain = (text.removeprefix("\ufeff") for text in solutions)
    found = (text for text in dict.fromkeys(plain) if _defines(text, entry_point))
    first, *others = list(islice(found, MOST_TRIED)) or [""]
    return first, tuple(others)


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
