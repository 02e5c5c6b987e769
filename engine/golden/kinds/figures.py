"""Golden kinds of the figures of evaluations."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from engine.config.golden_kind import Case
from engine.evaluation import diversity as of_clusters
from engine.evaluation import metrics


def pass_at_k(case: Case) -> Any:
    return [metrics.pass_at_k(n, correct, k) for n, correct, k in case["inputs"]["cases"]]


def tree_select(case: Case) -> Any:
    inputs = case["inputs"]
    return asdict(metrics.tree_outcome(inputs["public"], inputs["private"], inputs.get("top_k", 1)))


def diversity(case: Case) -> Any:
    sizes, inputs = case["inputs"]["cluster_sizes"], case["inputs"]
    return {
        "DA": [of_clusters.distinct_at_k(sizes, k) for k in inputs["k"]],
        "EA": of_clusters.effective_clusters(sizes),
        "NAUADC": of_clusters.area_under_distinct(sizes, inputs["kmax"]),
    }
