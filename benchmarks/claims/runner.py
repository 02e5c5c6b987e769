"""The runner of cells: resumable, one at a time, each result written as soon as it is complete.

A result with the cell's digest is not measured again; where another claim has one, with the same
training and evaluation, it is copied. A failure is reported with its first cause, and the others go
on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.claims.cell import Cell, CellResult, ResultDamaged, read_result, write_result
from benchmarks.claims.measurement import measured
from benchmarks.claims.stages import StageFailed, Workplace


@dataclass
class RunnerReport:
    """What a run of the runner did, by cell name."""

    measured: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """First cause of each failure."""


def run_cells(
    cells: Sequence[Cell],
    results: Path,
    place: Workplace,
    report: Callable[[str], object],
    shared_ray: Callable[[], AbstractContextManager[Mapping[str, str]]] | None = None,
) -> RunnerReport:
    """Measures the cells that have no result yet; `report` receives a line of progress for each.

    With `shared_ray` all stages join one Ray, in the environment that it yields; it starts if there
    is a cell to measure. Without, each stage starts its own.
    """
    done = RunnerReport()
    pending = _pending(cells, results, done, report)
    report(f"{len(cells)} cells: {len(done.present)} present, {len(pending)} to do")
    with shared_ray() if shared_ray and pending else nullcontext(place.environment) as joined:
        _measure(pending, results, replace(place, environment=joined), report, done)
    return done


def _measure(
    pending: Sequence[Cell],
    results: Path,
    place: Workplace,
    report: Callable[[str], object],
    done: RunnerReport,
) -> None:
    spent: list[float] = []
    for number, cell in enumerate(pending, start=1):
        started = time.monotonic()
        try:
            said = _complete(cell, results, place, done)
        except (StageFailed, ValueError, OSError) as error:
            done.failed[cell.name] = str(error)
            said = f"failed: {error}"
        seconds = time.monotonic() - started
        spent.append(seconds)
        left = (len(pending) - number) * sum(spent) / len(spent)
        report(f"{number}/{len(pending)} {cell.name}: {said} ({seconds:.0f} s; about "
               f"{_duration(left)} left)")  # fmt: skip


def _pending(
    cells: Sequence[Cell], results: Path, done: RunnerReport, report: Callable[[str], object]
) -> list[Cell]:
    pending = []
    for cell in cells:
        try:
            result = read_result(cell.file(results))
        except ResultDamaged as error:
            report(f"{error}; measuring it again")
            result = None
        reason = "" if result is None else _outdated(cell, result)
        if result is not None and not reason:
            done.present.append(cell.name)
        else:
            if reason:
                report(f"{cell.name}: its result {reason}; measuring it again")
            pending.append(cell)
    return pending


def _outdated(cell: Cell, result: CellResult) -> str:
    """Returns why a result is not that of the cell; "" if it is."""
    if not cell.is_of(result):
        return "is of other settings"
    missing = [name for name in cell.claim.needs if name not in result.figures]
    return f"has no {missing[0]}" if missing else ""


def _complete(cell: Cell, results: Path, place: Workplace, done: RunnerReport) -> str:
    same = next((one for one in _all(results) if not _outdated(cell, one)), None)
    if same is not None:
        copied = replace(same, claim=cell.claim.name, arm=cell.arm.name)
        write_result(cell.file(results), copied)
        done.copied.append(cell.name)
        return f"the same as {same.claim}/{same.arm}-{same.seed}"
    result = measured(cell, place)
    write_result(cell.file(results), result)
    done.measured.append(cell.name)
    value = result.figures.get(cell.arm.reads.get(cell.claim.primary, cell.claim.primary))
    return f"{cell.claim.primary} {'unknown' if value is None else f'{value:.3f}'}"


def _all(results: Path) -> Iterator[CellResult]:
    for file in sorted(results.glob("*/*.json")):
        try:
            if (result := read_result(file)) is not None:
                yield result
        except ResultDamaged:
            continue  # reported where its own cell is due


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
