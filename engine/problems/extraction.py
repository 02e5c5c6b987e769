"""Extraction of the program from a model's answer.

Invariant: the verifier, the feedback of a refinement and answer selection all use the same program,
because all of them call `extract`; text is parsed here, never run. What stands in a thought never
counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.events.states import NoProgram
from engine.problems.answers import code as codes
from engine.problems.answers.blocks import (
    INVISIBLE,
    blocks,
    cleaned,
    segments,
    with_ticks,
    without_controls,
)
from engine.problems.answers.code import Code, Grade
from engine.problems.answers.completion import Parts
from engine.problems.answers.marks import turn, without_marks, without_thoughts, wrapped
from engine.problems.answers.parser import Parser
from engine.problems.answers.prose import looks_like_code, regions
from engine.problems.answers.readings import further

MAX_CHARS = 200_000  # larger than any real program; bounds the parser's work


@dataclass(frozen=True, slots=True)
class Extraction:
    """The program of an answer, and why it holds none."""

    program: str
    """Empty if there is none. With a reason it may be what else of the answer parses, which fails:
    a refinement shows it."""
    reason: NoProgram | None = None


def extract_program(answer: str, entry_point: str | None = None) -> str:
    """Returns the program of an answer as `extract` does, without the reason."""
    return extract(answer, entry_point).program


def extract(answer: str, entry_point: str | None = None, *, cut: bool = False) -> Extraction:
    """Returns the program of an answer to a problem with this entry point.

    `entry_point` is that of the problem: a function `name`, a method `Class.name`, or empty for a
    program that reads stdin and prints; None if it is unknown. `cut` says that the answer ended at
    a limit.

    The program is the last fenced block that defines the entry point, with what it lacks from the
    other blocks; for stdin, the one that reads and prints. Blocks of other languages never count.
    Without such a block, code within prose counts. A fence that is still open at the end of the
    answer counts as closed there; in an answer that was cut, a closed block comes first. Nothing
    counts in an answer of more than MAX_CHARS outside its thoughts.
    """
    parser = Parser(len(answer))
    if len(answer) <= MAX_CHARS and _is_program(parser.code(answer), entry_point):
        return Extraction(answer)
    spoken = without_thoughts(answer.replace("\r\n", "\n").replace("\r", "\n"))
    text = spoken.text.lstrip(_INVISIBLE)
    found = Extraction("", NoProgram.DOES_NOT_PARSE)
    if len(text) <= MAX_CHARS:
        found = _found(text, entry_point, parser, cut)
    if found.reason and (cut or spoken.unfinished):
        reason = NoProgram.CUT_AT_LIMIT if cut else NoProgram.NO_CODE
        return Extraction(found.program, reason)
    return found


_INVISIBLE = "".join(map(chr, INVISIBLE))


@dataclass(frozen=True, slots=True)
class _Candidate:
    code: Code
    grade: Grade
    is_tagged: bool = True
    """Whether its block names Python, or no language."""
    is_cut: bool = False
    """Whether its block was cut at the answer's limit."""
    is_rejected: bool = False
    """Whether the answer calls it wrong."""


def _is_program(code: Code | None, entry_point: str | None) -> bool:
    return bool(code and _grade(code, entry_point) and codes.without_remarks(code) is code)


def _grade(code: Code, entry_point: str | None) -> Grade:
    if entry_point is None:
        return Grade.WHOLE if code.defines_functions else Grade.NONE
    return code.grade(entry_point)


def _found(text: str, entry_point: str | None, parser: Parser, cut: bool) -> Extraction:
    """Returns the program of an answer without thoughts."""
    own = turn(text)
    readings = [without_marks(one) for one in (wrapped(own), own)]
    others = text, with_ticks(readings[-1]), without_controls(readings[-1])
    for reading in dict.fromkeys((*readings, *others)):
        if reading.strip() and (program := _chosen(reading, entry_point, parser, cut)):
            return Extraction(program)
    for reading in further(readings[-1], entry_point):
        if not codes.may_define(reading, entry_point):
            continue
        if program := _chosen(reading, entry_point, parser, cut):
            return Extraction(program)
    return _rest(readings[-1], parser)


def _chosen(text: str, entry_point: str | None, parser: Parser, cut: bool) -> str:
    """Returns the program of one reading of an answer; empty if there is none."""
    fenced = [
        _Candidate(
            block.code,
            _grade(block.code, entry_point),
            block.tag.may_be_python,
            cut and block.is_open,
            block.is_rejected,
        )
        for block in blocks(text, parser.code)
        if block.code
    ]
    best = _best(fenced, entry_point, parser)
    if best and best.grade == Grade.WHOLE:
        return best.code.text
    if not codes.may_define(text, entry_point):
        return best.code.text if best else ""
    loose = [_Candidate(code, _grade(code, entry_point)) for code in _loose(text, parser)]
    other = _best(loose, entry_point, parser)
    if other and (best is None or other.grade > best.grade):
        best = other
    return best.code.text if best else ""


def _best(
    candidates: Sequence[_Candidate], entry_point: str | None, parser: Parser
) -> _Candidate | None:
    """Returns the candidate that is most of what the problem needs, completed; the last
    one of equals.

    Of programs for stdin, one that needs nothing from the others comes first: the other is mostly
    an excerpt.
    """
    parts = Parts([candidate.code for candidate in candidates], parser)
    ranked: list[tuple[tuple[Grade, bool, bool, bool, bool, int], _Candidate]] = []
    for index, candidate in enumerate(candidates):
        code = candidate.code
        if entry_point == "":
            code = parts.completed(index)
        grade = _grade(code, entry_point)
        if grade:
            meant, whole = not candidate.is_rejected, not candidate.is_cut
            rank = grade, meant, whole, candidate.is_tagged, code is candidate.code, index
            ranked.append((rank, _Candidate(code, grade)))
    if not ranked:
        return None
    rank, best = max(ranked, key=lambda one: one[0])
    return _Candidate(parts.completed(rank[-1]), best.grade) if entry_point else best


def _loose(text: str, parser: Parser) -> Iterator[Code]:
    """Yields the code within prose, and within blocks that hold prose."""
    for segment in segments(text):
        found = False
        for reading in (segment, *cleaned(segment)):
            for code in regions(reading, parser):
                found = True
                yield code
            if found:
                break


def _rest(text: str, parser: Parser) -> Extraction:
    """Returns the last program of an answer without its entry point, and the reason."""
    fenced = [block for block in blocks(text, parser.code) if not block.is_inline]
    found = [block.code for block in fenced if block.code]
    if not fenced:
        return _unfenced(text)
    if not found:
        return Extraction("", NoProgram.DOES_NOT_PARSE)
    programs = [code.text for code in found if not code.is_expression]
    return Extraction(programs[-1] if programs else "", NoProgram.NO_ENTRY_POINT)


def _unfenced(text: str) -> Extraction:
    if not text.strip():
        return Extraction("", NoProgram.NO_CODE)
    if (tree := codes.parsed(text)) is not None:
        is_code = not Code(text, tree).is_expression
        return Extraction(text, NoProgram.NO_ENTRY_POINT if is_code else NoProgram.NO_CODE)
    is_code = looks_like_code(text)
    return Extraction("", NoProgram.DOES_NOT_PARSE if is_code else NoProgram.NO_CODE)
