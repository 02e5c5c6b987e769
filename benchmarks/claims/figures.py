"""The figures that claims compare."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.claims.claim import Figure

TREE_1 = Figure("tree/pass@1", "Pass@1(tree)")
PASS_1 = Figure("pass@1", "Pass@1")
PASS_8 = Figure("pass@8", "Pass@8")
TREE_N = Figure("tree/pass@n", "Pass@N of the tree")
DIVERSITY = Figure("samples/effective_clusters", "EA of independent samples")
TREE_DIVERSITY = Figure("tree/effective_clusters", "EA of the tree")
REFINED = Figure("tree/refined", "nodes at depth ≥ 2")
TRAINED_REFINED = Figure("training/refined", "nodes at depth ≥ 2, training")
LEARNED = Figure("learned_tokens", "learned tokens")
SECONDS = Figure("seconds", "seconds")
CLIPPED = Figure("training/clip_fraction", "clipped share of tokens, training")
PPO_CLIPPED = Figure(
    "training/ppo_clip_fraction", "the same tokens, clipped by PPO's 0.2 and 0.28 per token"
)
STEP_SECONDS = Figure("training/seconds_per_step", "seconds per step")
ANSWER_1 = Figure("answer/pass@1", "Pass@1 of the selected answer")
ANSWER_N = Figure("answer/pass@n", "Pass@N")
ANSWER_DIVERSITY = Figure("answer/effective_clusters", "EA")
ANSWER_REFINED = Figure("answer/refined", "nodes at depth ≥ 2")

ATTEMPTS = ("fresh", "fresh-right", "repairs", "repairs-right", "repairs-expected")
"""Counts behind the odds of a repair (`benchmarks.claims.odds`), in the figures of a cell."""

OF_TRAINING = (TREE_1, PASS_1, PASS_8, DIVERSITY, TREE_DIVERSITY, TRAINED_REFINED, LEARNED, SECONDS)
OF_UPDATES = (TREE_1, PASS_1, PASS_8, CLIPPED, PPO_CLIPPED, STEP_SECONDS, DIVERSITY,
              TRAINED_REFINED, LEARNED)  # fmt: skip
OF_SEARCH = (TREE_1, TREE_N, TREE_DIVERSITY, REFINED, SECONDS)
OF_ANSWERS = (ANSWER_N, ANSWER_DIVERSITY, ANSWER_REFINED)
"""The figures of a selected answer, without the first."""

OF_REPAIRS = (
    Figure("training/first/right", "training: first attempts that are right"),
    Figure("training/first/another-reading", "training: first attempts at another reading"),
    Figure("training/repair-of-another-reading/right", "training: right repairs of these"),
    Figure("training/repair-of-wrong/right", "training: right repairs of other wrong programs"),
)
"""Of the underspecified problems in the last third of a training."""


def attempts_key(name: str) -> str:
    """Returns the key of a count of `ATTEMPTS`."""
    return f"attempts/{name}"


def by_readings(figure: Figure, counts: Sequence[int]) -> tuple[Figure, ...]:
    """Returns the figure over the problems of each number of readings."""
    return tuple(
        Figure(readings_key(figure.name, count), f"{figure.label}, {count} readings")
        for count in counts
    )


def readings_key(name: str, readings: int) -> str:
    """Returns the key of a figure over the problems with this number of readings."""
    return f"{name}/{readings}-readings"
