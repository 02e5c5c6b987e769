"""Check of references: leaves out of a run the problems whose own reference solution fails.

Invariant: a run keeps its problems. The result is stored in RUN_DIR/references.json, so that a
resumed run has the same problems, whatever the load of the machine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

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
    faults = _remembered(run_dir, used)
    if faults is None:
        faults = _found(problems, used, verify)
        _remember(run_dir, used, faults)
    failing = {fault.value for fault in faults}
    left = {
        split: [p for p in getattr(problems, split) if p.id not in failing]
        for split in ("train", "validation", "test")
    }
    if any(getattr(problems, split) and not left[split] for split in left):
        raise DatasetError(faults)
    return replace(problems, **left, left_out=[*problems.left_out, *faults])


def _found(problems: ProblemSet, used: Sequence[Problem], verify: Verify) -> list[DatasetIssue]:
    known = [problem for problem in used if problem.reference.strip()]
    report = check(LoadedDataset("", known, [problems.locations[p.id] for p in known]), verify)
    return [_fault(finding) for finding in (*report.failed, *report.unverified)]


def _fault(finding: Finding) -> DatasetIssue:
    remedy = (
        f"its own reference ends as {finding.verdict}, with {finding.passed:.0%} of the tests "
        f"passed ({finding.reason}); mend the row, or drop it with `problems check --keep`"
    )
    return DatasetIssue(finding.place.file, finding.place.line, "reference", finding.id, remedy)


def _remember(run_dir: Path, used: Sequence[Problem], faults: list[DatasetIssue]) -> None:
    found = {"problems": set_hash(used), "left_out": [asdict(fault) for fault in faults]}
    draft = run_dir / f"{FILE_NAME}.draft"
    draft.write_text(json.dumps(found))
    draft.replace(run_dir / FILE_NAME)


def _remembered(run_dir: Path, used: Sequence[Problem]) -> list[DatasetIssue] | None:
    file = run_dir / FILE_NAME
    if not file.is_file():
        return None
    found = json.loads(file.read_text())
    if found["problems"] != set_hash(used):
        return None
    return [DatasetIssue(**fault) for fault in found["left_out"]]
