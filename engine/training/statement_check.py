"""Check of statements: leaves out of a run the problems that fit into no prompt.

Invariant: a run keeps its problems: what is left out depends on statements, tokenizers, templates
and `sampling.max_prompt_tokens` alone, none of which a resume may change.
"""

from __future__ import annotations

from dataclasses import replace

from engine.problems.errors import DatasetError, DatasetIssue
from engine.problems.source import ProblemSet
from engine.rollout.long_statements import TooLong, divided_by_length


def without_long_statements(problems: ProblemSet, too_long: TooLong) -> ProblemSet:
    """Returns the splits without the problems whose statement exceeds an agent's limit, each listed
    in `left_out`. Generated problems, whose statements are short, are not measured.

    Raises:
        DatasetError: no problem of a split is left.
    """
    if not problems.locations:
        return problems
    left, issues = {}, list[DatasetIssue]()
    for split in ("train", "validation", "test"):
        before = getattr(problems, split)
        left[split], long = divided_by_length(before, too_long)
        places = [(problems.locations[problem.id], problem, why) for problem, why in long]
        issues += [DatasetIssue(at.file, at.line, "statement", p.id, why) for at, p, why in places]
        if before and not left[split]:
            raise DatasetError(issues)
    return replace(problems, **left, left_out=[*problems.left_out, *issues])
