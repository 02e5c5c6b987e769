"""All results of a claim, checked against its current definition, and what they say.

Invariants: every cell of a claim has the same plan; cells of other plans or settings are left out
and named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.claims.budgets import mismatches
from benchmarks.claims.cell import Cell, CellResult, read_result
from benchmarks.claims.claim import Arm, Claim, Plan
from benchmarks.claims.statistics import Comparison, Outcome, compared, overall

Values = dict[int, float | None]
"""Values of a figure by seed."""


@dataclass
class ClaimRecord:
    claim: Claim
    plan: Plan
    results: dict[str, dict[int, CellResult]]
    """Results by arm and seed."""
    left_out: list[str] = field(default_factory=list)
    """Names of cells whose settings are no longer those of the claim, or whose plan is another."""

    def values(self, arm: Arm, figure: str) -> Values:
        """Returns a figure of an arm by seed, under the name that the arm reads it by."""
        name = arm.reads.get(figure, figure)
        return {seed: one.figures.get(name) for seed, one in self.results[arm.name].items()}

    def comparison(self, arm: Arm, figure: str) -> Comparison:
        """Returns the arm minus its control, over the seeds that both have."""
        control = self.claim.control_of(arm)
        assert control is not None
        return compared(self.values(control, figure), self.values(arm, figure))

    def tested(self) -> list[Arm]:
        """Returns the arms that are compared with a control."""
        return [arm for arm in self.claim.arms if self.claim.control_of(arm)]

    def deciding(self) -> list[Arm]:
        """Returns those of them that have a say in the outcome."""
        return [arm for arm in self.tested() if arm.decides]

    def outcomes(self) -> dict[str, Outcome]:
        """Returns what the primary figure of each arm that decides says about the statement."""
        primary, expected = self.claim.primary, self.claim.expected
        return {a.name: self.comparison(a, primary).outcome(expected) for a in self.deciding()}

    def outcome(self) -> Outcome:
        return overall(list(self.outcomes().values()))

    def seeds(self) -> tuple[int, int]:
        """Returns the smallest and the largest number of seeds of a comparison that decides."""
        counts = [self.comparison(arm, self.claim.primary).seeds for arm in self.deciding()]
        return min(counts), max(counts)

    def mismatches(self) -> dict[str, dict[int, list[str]]]:
        """Returns the budgets that differ from the control's, by arm and seed."""
        differing: dict[str, dict[int, list[str]]] = {}
        for arm in self.tested():
            control = self.claim.control_of(arm)
            assert control is not None
            theirs = self.results[control.name]
            for seed, one in self.results[arm.name].items():
                if seed in theirs and (
                    sentences := mismatches(self.claim, arm, one.budget, theirs[seed].budget)
                ):
                    differing.setdefault(arm.name, {})[seed] = sentences
        return differing

    def all(self) -> list[CellResult]:
        return [one for by_seed in self.results.values() for one in by_seed.values()]


def claim_record(claim: Claim, folder: Path) -> ClaimRecord:
    """Returns the record of a claim from the results' directory.

    Raises:
        ResultDamaged: a file is not as the runner wrote it.
    """
    valid, left_out = _valid(claim, folder)
    plans = Counter(tuple(sorted(one.plan.items())) for one in valid)
    plan = Plan(**dict(plans.most_common(1)[0][0])) if plans else claim.plan
    results: dict[str, dict[int, CellResult]] = {arm.name: {} for arm in claim.arms}
    for one in valid:
        if Plan(**one.plan) == plan:
            results[one.arm][one.seed] = one
        else:
            left_out.append(f"{one.arm}-{one.seed}")
    return ClaimRecord(claim, plan, results, sorted(left_out))


def _valid(claim: Claim, folder: Path) -> tuple[list[CellResult], list[str]]:
    arms = {arm.name: arm for arm in claim.arms}
    valid, left_out = [], []
    for one in _stored(claim, folder):
        arm = arms.get(one.arm)
        if arm and Cell(claim, arm, one.seed, Plan(**one.plan)).is_of(one):
            valid.append(one)
        else:
            left_out.append(f"{one.arm}-{one.seed}")
    return valid, left_out


def _stored(claim: Claim, folder: Path) -> Iterable[CellResult]:
    stored = (read_result(file) for file in sorted((folder / claim.name).glob("*.json")))
    return sorted((one for one in stored if one is not None), key=lambda one: (one.arm, one.seed))
