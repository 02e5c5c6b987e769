"""Points of "when does a tree pay?": what a tree gains over samples, by the odds of a repair.

A point is a family of problems (or one number of readings), a stage of training and a size of
trees, from the results of the claims about trees and samples; or a report of `python -m engine
evaluate --json` of another model, with its problems in place of seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.claims.catalogue import BY_NAME
from benchmarks.claims.cell import CellResult
from benchmarks.claims.claim import Arm
from benchmarks.claims.figures import ANSWER_1, ATTEMPTS, attempts_key, readings_key
from benchmarks.claims.odds import Counts, Ratio, counts_of, ratio
from benchmarks.claims.record import ClaimRecord, claim_record
from benchmarks.claims.searches import FAMILIES, Subject, subjects, tree_or_samples
from benchmarks.claims.statistics import CONFIDENCE, compared
from engine.evaluation.figures import read_report
from engine.problems.paired import Interval, paired_student

LEAST_REPAIRS = 20
"""Repairs below which a point says nothing about their chance, and is left out."""
LEAST_SEEDS = 3
"""Seeds below which the same holds of its gain: Student's t of one degree of freedom is 12.7."""


@dataclass(frozen=True)
class Point:
    problems: str
    team: str
    trained: bool
    nodes: int
    readings: int | None
    """One number of readings; None: all problems of the family."""
    units: int
    """Seeds of a claim, problems of a report."""
    unit: str
    fresh: float
    """Chance that a fresh answer is right."""
    repair: float
    """Chance that a repair of a wrong program is."""
    odds: Ratio
    odds_on_same: Ratio | None
    gain: Interval
    """Tree minus as many independent samples, of which the same rule selects."""
    source: str
    """Claim, or name of the report."""


@dataclass(frozen=True)
class Missing:
    """A comparison of a tree with samples whose results have no counts of repairs."""

    claim: str
    nodes: int


def points(results: Path, reports: Path) -> tuple[list[Point], list[Missing]]:
    """Returns the points of both folders, and the comparisons for which the counts are missing.

    Raises:
        ResultDamaged: a result is not as the runner wrote it.
        ValueError: a report is none.
    """
    found: list[Point] = []
    missing: list[Missing] = []
    for subject in subjects(*FAMILIES):
        record = claim_record(BY_NAME[tree_or_samples(subject).name], results)
        for arm in record.tested():
            if record.comparison(arm, ANSWER_1.name).interval is None:
                continue
            made = list(_of_arm(record, arm, subject))
            found += made
            if not made:
                missing.append(Missing(record.claim.name, arm.search.nodes))
    found += [_of_report(file) for file in sorted(reports.glob("*.json"))]
    return found, missing


def _of_arm(record: ClaimRecord, arm: Arm, subject: Subject) -> Iterator[Point]:
    """Yields the point of all problems, and those of each number of readings."""
    for readings in (None, *subject.family.readings):
        name = ANSWER_1.name if readings is None else readings_key(ANSWER_1.name, readings)
        by_seed = {
            seed: counts
            for seed, one in record.results[arm.name].items()
            if (counts := _counts(one, readings)) is not None
        }
        gain = _gain(record, arm, name, by_seed)
        counts = list(by_seed.values())
        odds = ratio(counts, lambda one: one.odds)
        if gain is None or odds is None or len(counts) < LEAST_SEEDS:
            continue
        total = Counts.total(counts)
        if total.repairs < LEAST_REPAIRS:
            continue
        yield Point(
            problems=subject.family.words,
            team="ash and rowan" + (", trained" if subject.trained else ""),
            trained=subject.trained,
            nodes=arm.search.nodes,
            readings=readings,
            units=len(counts),
            unit="seeds",
            fresh=total.fresh_right / total.fresh,
            repair=total.repairs_right / total.repairs,
            odds=odds,
            odds_on_same=ratio(counts, lambda one: one.odds_on_same),
            gain=gain,
            source=record.claim.name,
        )


def _gain(record: ClaimRecord, arm: Arm, name: str, seeds: Iterable[int]) -> Interval | None:
    """Returns tree minus samples over the seeds whose repairs are counted."""
    control = record.claim.control_of(arm)
    assert control is not None
    both = ({seed: record.values(one, name).get(seed) for seed in seeds} for one in (control, arm))
    return compared(*both).interval


def _counts(result: CellResult, readings: int | None) -> Counts | None:
    keys = map(attempts_key, ATTEMPTS)
    if readings is not None:
        keys = (readings_key(key, readings) for key in keys)
    found = [result.figures.get(key) for key in keys]
    return Counts(*(one for one in found if one is not None)) if None not in found else None


def _of_report(file: Path) -> Point:
    """Returns the point of a report of another model; its name is the file's.

    Raises:
        ValueError: it is no report, or has no trees with counts.
    """
    report = read_report(file)
    problems = report["problems"]
    if not problems or not all("attempts" in one for one in problems):
        raise ValueError(f"{file}: its problems have no attempts; evaluate again, with a search")
    counts = [counts_of(one) for one in problems]
    total, odds = Counts.total(counts), ratio(counts, lambda one: one.odds)
    if odds is None:
        raise ValueError(f"{file}: no fresh answer is right, or nothing was repaired; it has no x")
    pairs = [(one["values"]["samples/pass@1"], one["values"]["tree/pass@1"]) for one in problems]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return Point(
        problems=Path(report["dataset"]["path"]).name,
        team=file.stem,
        trained=False,
        nodes=report["settings"]["evaluation"]["tree_nodes"],
        readings=None,
        units=len(problems),
        unit="problems",
        fresh=total.fresh_right / total.fresh,
        repair=total.repairs_right / total.repairs,
        odds=odds,
        odds_on_same=ratio(counts, lambda one: one.odds_on_same),
        gain=paired_student(*map(list, zip(*known, strict=True)), CONFIDENCE),
        source=file.stem,
    )
