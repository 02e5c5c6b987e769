"""Check of references: leaves out of a run the problems whose own reference solution fails.

Invariant: a run keeps its problems. The result is stored in RUN_DIR/references.json, so that a
resumed run has the same problems, whatever the load of the machine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from engine.problems.check import Finding, Verify, check
from engine.problems.errors import DatasetError, DatasetIssue
from engine.problems.identity import set_hash
from engine.problems.load import LoadedDataset
from engine.problems.problem import Problem
from engine.problems.source import ProblemSet

FILE_NAME = "references.json"


def without_failing_references(problems: ProblemSet, run_dir: Path, verify: Verify) -> ProblemSet:
    """Returns the splits without the problems whose reference fails, each listed in `left_out`.

    A problem without a reference stays: many published sets have none. Generated problems are not
    checked.

    Raises:
        DatasetError: no problem of a split is left.
    """
    if not problems.locations:
        return problems
    used = [*problems.train, *problems.validation, *problems.test]
    checked = _remembered(run_dir, used)
    if checked is None:
        checked = _checked(problems, used, verify)
        _remember(run_dir, used, checked)
    issues, right = checked
    failing = {issue.value for issue in issues}
    left = {
        split: [
            replace(p, reference=right.get(p.id, p.reference))
            for p in getattr(problems, split)
            if p.id not in failing
        ]
        for split in ("train", "validation", "test")
    }
    if any(getattr(problems, split) and not left[split] for split in left):
        raise DatasetError(issues)
    return replace(problems, **left, left_out=[*problems.left_out, *issues])


Checked = tuple[list[DatasetIssue], dict[str, str]]
"""Problems whose references fail; by id, the right reference of those whose first one fails."""


def _checked(problems: ProblemSet, used: Sequence[Problem], verify: Verify) -> Checked:
    with_reference = [problem for problem in used if problem.reference.strip()]
    report = check(
        LoadedDataset("", with_reference, [problems.locations[p.id] for p in with_reference]),
        verify,
    )
    issues = [_issue(finding) for finding in (*report.failed, *report.unverified)]
    first = {problem.id: problem.reference for problem in used}
    right = {p.id: p.reference for p in report.passed if p.reference != first[p.id]}
    return issues, right


def _issue(finding: Finding) -> DatasetIssue:
    remedy = (
        f"its own reference ends as {finding.verdict}, with {finding.passed:.0%} of the tests "
        f"passed ({finding.reason}); mend the row, or drop it with `problems check --keep`"
    )
    return DatasetIssue(finding.place.file, finding.place.line, "reference", finding.id, remedy)


def _remember(run_dir: Path, used: Sequence[Problem], checked: Checked) -> None:
    issues, right = checked
    record: dict[str, Any] = {
        "problems": set_hash(used),
        "left_out": [asdict(issue) for issue in issues],
    }
    if right:
        record["references"] = right
    draft = run_dir / f"{FILE_NAME}.draft"
    draft.write_text(json.dumps(record))
    draft.replace(run_dir / FILE_NAME)


def _remembered(run_dir: Path, used: Sequence[Problem]) -> Checked | None:
    file = run_dir / FILE_NAME
    if not file.is_file():
        return None
    record = json.loads(file.read_text())
    if record["problems"] != set_hash(used):
        return None
    issues = [DatasetIssue(**issue) for issue in record["left_out"]]
    return issues, record.get("references", {})
