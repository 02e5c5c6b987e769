"""Programs in several blocks: a signature and its body, a class and its methods.

Each reading is a pure function of the blocks' texts.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence

from engine.problems.answers.code import Code, first_line, last_line, parsed
from engine.problems.answers.embedded import fenced

_MOST_STARTS = 8
"""Blocks with which a joined program may begin that are tried."""
_METHOD = re.compile(r"(?:@\w[^\n]*\n)*(?:async[ \t]+)?def[ \t]+\w+[ \t]*\([ \t\n]*(?:self|cls)\b")


def with_methods(code: Code, blocks: Sequence[str], owner: str) -> str:
    """Returns the code with the methods that its class `owner` lacks and that other blocks hold
    alone; empty if there are none."""
    nodes = code.tree.body
    found = [one for one in nodes if isinstance(one, ast.ClassDef) and one.name == owner]
    if not found:
        return ""
    body, lines = found[-1].body, code.text.split("\n")
    names = {one.name for one in body if isinstance(one, _FUNCTIONS)}
    added: list[str] = []
    for block in reversed(blocks):  # the later of two counts
        for name, text in _methods_of(textwrap.dedent(block).strip("\n")):
            if name not in names:
                names.add(name)
                added += textwrap.indent(text, " " * body[0].col_offset).split("\n")
    end = last_line(found[-1])
    return "\n".join([*lines[:end], *added, *lines[end:]]) if added else ""


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _methods_of(text: str) -> Iterator[tuple[str, str]]:
    """Yields names and texts of the methods of a block that holds nothing else."""
    module = parsed(text) if _METHOD.match(text) else None
    for node in module.body if module else ():
        if not isinstance(node, _FUNCTIONS):
            return
        rows = text.split("\n")[first_line(node) - 1 : last_line(node)]
        yield node.name, "\n".join(rows)


def joined(blocks: Sequence[str], entry_point: str | None) -> Iterator[str]:
    """Yields the blocks one after another as one: all of them, then without the first ones.

    A block of methods that is not indented is taken into the class of the entry point that an
    earlier block begins.
    """
    if len(blocks) < 2:
        return
    owner = (entry_point or "").rpartition(".")[0]
    for start in range(min(len(blocks) - 1, _MOST_STARTS)):
        rest = blocks[start:]
        yield fenced("\n".join(rest))
        if owner and (methods := _with_methods(rest, owner)):
            yield fenced(methods)


def _with_methods(blocks: Sequence[str], owner: str) -> str:
    """Returns the blocks with those of methods within the class before them; empty if there are
    none."""
    head = re.compile(rf"^class[ \t]+{re.escape(owner)}\b", re.MULTILINE)
    is_in_class, changed = False, False
    pieces: list[str] = []
    for block in blocks:
        if is_in_class and _METHOD.match(block.lstrip("\n")):
            block, changed = textwrap.indent(block, "    "), True
        else:
            is_in_class = head.search(block) is not None
        pieces.append(block)
    return "\n".join(pieces) if changed else ""
