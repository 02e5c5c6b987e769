"""Diversity of the programs of a tree: their entropy, and the different ones among K.

Means over the step's trees, of each agent's own programs and of the whole team's, which are more
diverse than any agent's if agents do not write the same. Programs are equal up to names, layout and
comments (`engine.evaluation.diversity`). Entropy grows with the number of programs, so it compares
steps of the same size; `distinct` compares any, and leaves out what has fewer than K programs.

Sources: entropy of the answers, Wu et al. 2025, arXiv 2507.14843, which may fall while that of the
tokens rises; DA@K, Lee et al. 2025, arXiv 2503.00691.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from pydantic import Field

from engine.config.base import Settings
from engine.config.golden_kind import Case, Kind
from engine.config.methods import Figure
from engine.evaluation.diversity import answer_entropy, cluster_sizes, distinct_at_k
from engine.evaluation.gauges.gauge import GaugeContext, Numbers, StepEvents, StepTree

FIGURES = {
    "entropy": Figure("Entropy of a tree's programs", unit="nats", section="Search quality"),
    "distinct": Figure("Different programs among K of a tree", unit="programs",
                       section="Search quality"),
}  # fmt: skip
TEAM = "whole_team"
"""Part of the whole team; no agent has such a name."""


class Options(Settings):
    """Diversity of the programs of a tree."""

    k: int = Field(4, ge=2, le=256)
    """Number of programs, drawn of a tree's without replacement, whose different ones are
    counted."""


def numbers(step: StepEvents, context: GaugeContext) -> Numbers:
    """Returns the means over the step's trees, by agent and, of several agents, of the team."""
    k = context.options.k
    whose = [*context.agents, *([TEAM] if len(context.agents) > 1 else [])]
    sizes = {one: [_sizes(tree, one) for tree in step.trees] for one in whose}

    def mean(of: Callable[[Sequence[int]], float], least: int) -> dict[str, float | None]:
        return {
            one: _mean([of(each) for each in sizes[one] if sum(each) >= least]) for one in whose
        }

    return {"entropy": mean(answer_entropy, 1), "distinct": mean(lambda s: distinct_at_k(s, k), k)}


def _sizes(tree: StepTree, whose: str) -> list[int]:
    """Returns the sizes of the clusters of an agent's programs in a tree, or of the team's."""
    nodes = [node for node in tree.nodes if whose in (TEAM, node.agent)]
    return cluster_sizes(node.closed.program for node in nodes)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _golden(case: Case) -> float:
    answers = [one for one in case["inputs"]["answers"] if one is not None]
    return answer_entropy(list(Counter(answers).values()))


GOLDEN = {"answer_entropy": Kind(_golden, "answers")}
