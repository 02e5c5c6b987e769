"""Check of a data set: whether every problem accepts its own reference solution.

Invariant: every problem is judged or named: `passed`, `failed` and `unverified` are disjoint, and
together with `left_out` (rows that could not be read) they are the whole data set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from engine.events.vocabulary import Verdict
from engine.problems.errors import DatasetIssue
from engine.problems.load import LoadedDataset, RowLocation
from engine.problems.problem import Problem
from engine.sandbox.host.verify import Verification

_BATCH = 64

Verify = Callable[[Sequence[tuple[Problem, str]]], Sequence[Verification]]
"""Function that returns verdicts on programs, in order."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Problem that cannot be trusted, and why."""

    place: RowLocation
    id: str
    verdict: str
    """Verdict of the reference; `no_program` if there is none."""
    passed: float
    """Share of tests that the reference passed."""
    reason: str


@dataclass(frozen=True)
class Report:
    """Result of a check; `passed` are the problems whose reference passes every test, or with
    another one of theirs that does."""

    format: str
    passed: list[Problem] = field(default_factory=list)
    failed: list[Finding] = field(default_factory=list)
    unverified: list[Finding] = field(default_factory=list)
    """Problems without a reference, and those that the sandbox could not judge."""
    left_out: list[DatasetIssue] = field(default_factory=list)
    tests: int = 0

    @property
    def clean(self) -> bool:
        return not (self.failed or self.unverified or self.left_out)


def check(
    dataset: LoadedDataset, verify: Verify, progress: Callable[[int], None] = lambda _: None
) -> Report:
    """Runs the reference of every problem on all its tests; calls `progress` with the number done.

    Raises:
        SandboxUnavailable: programs cannot run here.
    """
    report = Report(dataset.format, left_out=list(dataset.left_out))
    done, tests = 0, 0
    for batch in _batches(list(zip(dataset.locations, dataset.problems, strict=True))):
        results = verify([(problem, problem.reference) for _, problem in batch])
        for (location, problem), result in zip(batch, results, strict=True):
            _add_result(report, location, *_with_right_reference(problem, result, verify))
            tests += len(problem.public_tests) + len(problem.private_tests)
        done += len(batch)
        progress(done)
    return Report(
        report.format, report.passed, report.failed, report.unverified, report.left_out, tests
    )


def _with_right_reference(
    problem: Problem, result: Verification, verify: Verify
) -> tuple[Problem, Verification]:
    """Returns the problem with the first of its further references that passes, and its result;
    problem and result unchanged if there is none."""
    if result.passed or result.verdict == Verdict.SANDBOX_FAILURE:
        return problem, result
    for other in problem.other_references:
        (tried,) = verify([(problem, other)])
        if tried.passed:
            return replace(problem, reference=other, other_references=()), tried
    return problem, result


def _add_result(
    report: Report, location: RowLocation, problem: Problem, result: Verification
) -> None:
    if result.passed:
        report.passed.append(problem)
        return
    reason = result.error or _first_difference(result)
    if result.verdict == Verdict.NO_PROGRAM:
        reason = "the data set has no reference for it"
    finding = Finding(location, problem.id, result.verdict.value, result.fraction, reason)
    unknown = result.verdict in (Verdict.NO_PROGRAM, Verdict.SANDBOX_FAILURE)
    (report.unverified if unknown else report.failed).append(finding)


def _first_difference(result: Verification) -> str:
    for test in result.public:
        if test.verdict != Verdict.PASSED:
            return f"{test.input}: expected {test.expected}, got {test.actual}"
    return "a private test"


def _batches(
    pairs: Sequence[tuple[RowLocation, Problem]],
) -> Iterator[Sequence[tuple[RowLocation, Problem]]]:
    for start in range(0, len(pairs), _BATCH):
        yield pairs[start : start + _BATCH]
