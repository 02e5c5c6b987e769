"""The claims: one entry of `CLAIMS` each."""

from __future__ import annotations

from benchmarks.claims import searches, trainings
from benchmarks.claims.claim import Claim
from benchmarks.claims.searches import FAMILIES, OPEN, STATED

CLAIMS: tuple[Claim, ...] = (
    trainings.team(),
    trainings.papers_arms(),
    trainings.unequal_partners(),
    trainings.shaping(),
    trainings.advantage(),
    *map(searches.tree_or_samples, searches.subjects(*FAMILIES)),
    *map(searches.feedback, searches.subjects(STATED, OPEN)),
    searches.thompson(),
    searches.switches(),
    trainings.refinement(),
    trainings.thompson(),
    trainings.minibatches(),
    trainings.feedback(),
    *map(searches.public_score, searches.starters(STATED, OPEN)),
)
BY_NAME = {claim.name: claim for claim in CLAIMS}
