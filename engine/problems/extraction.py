"""Extraction of the program from a model's answer.

Invariant: the verifier, the feedback of a refinement and answer selection all use the same program,
because all of them call `extract`; text is parsed here, never run. What stands in a thought never
counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from engine.events.states import NoProgram
from engine.problems.answers import code as codes
from engine.problems.answers.blocks import (
    INVISIBLE,
    Block,
    blocks,
    cleaned,
    contents,
    segments,
    with_ticks,
    without_controls,
)
from engine.problems.answers.code import Code, Grade
from engine.problems.answers.completion import Parts
from engine.problems.answers.cut import reaches_end, whole_part
from engine.problems.answers.diffs import without_diffs
from engine.problems.answers.marks import (
    after_elements,
    turn,
    without_marks,
    without_thoughts,
    wrapped,
)
from engine.problems.answers.parser import Parser
from engine.problems.answers.pieces import with_methods
from engine.problems.answers.prose import looks_like_code, regions
from engine.problems.answers.readings import further

MAX_CHARS = 200_000  # larger than any real program; bounds the parser's work


@dataclass(frozen=True, slots=True)
class Extraction:
    """The program of an answer, and why it holds none."""

    program: str
    """Empty if there is none. With a reason it may be what else of the answer parses, which fails:
    a refinement shows it. So it may be the half of a function that was cut."""
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
    other blocks; for stdin, the one that reads and prints. Blocks of other languages, and diffs,
    never count. Without such a block, code within prose counts. A fence that is still open at the
    end of the answer counts as closed there; in an answer that was cut, a closed block comes first,
    and what was cut after the definition is left out. Nothing counts in an answer of more than
    MAX_CHARS outside its thoughts.
    """
    reader = _Reader(Parser(len(answer)), entry_point, cut)
    whole = reader.parser.code(answer) if len(answer) <= MAX_CHARS else None
    if whole and reader.is_program(whole):
        return reader.extraction(reader.candidate(whole, answer))
    spoken = without_thoughts(answer.replace("\r\n", "\n").replace("\r", "\n"))
    text = spoken.text.lstrip(_INVISIBLE)
    found = Extraction("", NoProgram.DOES_NOT_PARSE)
    if len(text) <= MAX_CHARS:
        found = reader.found(text)
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
    """Whether it is the end of an answer that was cut."""
    is_rejected: bool = False
    """Whether the answer calls it wrong."""
    is_unfinished: bool = False
    """Whether it was cut within what the problem needs."""

    @property
    def is_whole(self) -> bool:
        return self.grade == Grade.WHOLE and not self.is_unfinished


@dataclass(frozen=True, slots=True)
class _Reader:
    """Looks for the program of one answer in readings of its text."""

    parser: Parser
    entry_point: str | None
    is_cut: bool

    def is_program(self, code: Code) -> bool:
        return bool(self._grade(code)) and codes.without_remarks(code) is code

    def extraction(self, candidate: _Candidate) -> Extraction:
        reason = NoProgram.CUT_AT_LIMIT if candidate.is_unfinished else None
        return Extraction(candidate.code.text, reason)

    def found(self, text: str) -> Extraction:
        """Returns the program of an answer without thoughts."""
        own = turn(text)
        inside, outside = (without_marks(one) for one in (wrapped(own), own))
        readings = inside, outside
        others = text, with_ticks(outside), without_controls(outside)
        part: _Candidate | None = None
        tail = "" if inside.strip() else after_elements(own)
        chosen = self._chosen(tail) if codes.may_define(tail, self.entry_point) else None
        if chosen and chosen.is_whole and not chosen.code.missing:
            return self.extraction(chosen)
        for reading in dict.fromkeys((*readings, *others)):
            if not reading.strip() or not (chosen := self._chosen(reading)):
                continue
            if chosen.grade == Grade.WHOLE or not self.entry_point:
                whole = self._chosen(outside) if reading is inside and chosen.code.missing else None
                return self.extraction(self._with_methods(_completed(chosen, whole), outside))
            part = part or chosen
        for reading in further(outside, self.entry_point):
            if not codes.may_define(reading, self.entry_point):
                continue
            chosen = self._chosen(reading)
            if chosen and (chosen.grade == Grade.WHOLE or not part):
                return self.extraction(chosen)
        return self.extraction(part) if part else _rest(outside, self.parser)

    def _with_methods(self, chosen: _Candidate, text: str) -> _Candidate:
        """Returns the candidate with the methods of its class that stand in blocks of their own."""
        owner = (self.entry_point or "").partition(".")[0]
        if not owner or chosen.is_unfinished or "class" not in chosen.code.text:
            return chosen
        code = self.parser.code(with_methods(chosen.code, contents(text), owner))
        return replace(chosen, code=code) if code else chosen

    def candidate(self, code: Code, text: str, block: Block | None = None) -> _Candidate:
        """Returns the candidate of a piece of code of a text, or of a block of it."""
        is_cut = self.is_cut and (block.is_open if block else reaches_end(code, text))
        unfinished = False
        if is_cut:
            code, unfinished = whole_part(code, self.entry_point, text)
        grade = self._grade(code)
        tagged, rejected = (block.tag.may_be_python, block.is_rejected) if block else (True, False)
        return _Candidate(code, grade, tagged, is_cut, rejected, unfinished)

    def _grade(self, code: Code) -> Grade:
        if self.entry_point is None:
            return Grade.WHOLE if code.defines_functions else Grade.NONE
        return code.grade(self.entry_point)

    def _chosen(self, text: str) -> _Candidate | None:
        """Returns the program of one reading of an answer; None if there is none."""
        fenced = [
            self.candidate(block.code, text, block)
            for block in blocks(text, self.parser.code)
            if block.code
        ]
        best = self._best(fenced)
        if best and best.is_whole:
            return best
        if not codes.may_define(text, self.entry_point):
            return best
        cut = self.is_cut and bool(self.entry_point)  # a shorter program for stdin is another one
        loose = [self.candidate(code, text) for code in _loose(text, self.parser, cut)]
        other = self._best(loose)
        if best is None or (other and (other.is_whole or other.grade > best.grade)):
            return other
        return best

    def _best(self, candidates: Sequence[_Candidate]) -> _Candidate | None:
        """Returns the candidate that is most of what the problem needs, completed; the last
        one of equals.

        Of programs for stdin, one that needs nothing from the others comes first: the other is
        mostly an excerpt.
        """
        parts = Parts([candidate.code for candidate in candidates], self.parser)
        ranked: list[tuple[tuple[Grade, bool, bool, bool, bool, int], _Candidate]] = []
        for index, candidate in enumerate(candidates):
            code, grade = candidate.code, candidate.grade
            if self.entry_point == "":
                code = parts.completed(index)
                grade = self._grade(code)
            if grade:
                meant, whole = not candidate.is_rejected, not candidate.is_cut
                rank = grade, meant, whole, candidate.is_tagged, code is candidate.code, index
                ranked.append((rank, replace(candidate, code=code, grade=grade)))
        if not ranked:
            return None
        rank, best = max(ranked, key=lambda one: one[0])
        return replace(best, code=parts.completed(rank[-1])) if self.entry_point else best


def _completed(chosen: _Candidate, whole: _Candidate | None) -> _Candidate:
    """Returns the program that a wrapper holds, with what it lacks from around the wrapper."""
    same = whole and chosen.code.text.strip() in whole.code.text
    return whole if whole and same else chosen


def _loose(text: str, parser: Parser, cut: bool) -> Iterator[Code]:
    """Yields the code within prose, and within blocks that hold prose."""
    pieces = [without_diffs(segment) for segment in segments(text)]
    for number, segment in enumerate(pieces, 1):
        found, is_cut = False, cut and number == len(pieces)
        for reading in (segment, *cleaned(segment)):
            for code in regions(reading, parser, cut=is_cut):
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
