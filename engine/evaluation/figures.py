"""Figures of an evaluation, each with its cost, and the comparison of two evaluations.

Source: docs/algorithm.md, section 9.

A figure is one value per problem, None where a verification failed technically. Names:
`pass@K/AGENT` and `pass@K/team` from independent samples (unbiased); `tree/pass@1` the answer that
the search selects, `tree/pass@n` any node, `tree/pass@n/AGENT` any node of that agent,
`tree/share/AGENT` its share of the nodes, `tree/solved/AGENT` the share of those that are right;
`hacking/AGENT` and `hacking/team` the share of the independent samples that pass every public test
and fail a private one, which is how reward hacking shows, `tree/hacking` that of the trees' nodes;
`no_program/AGENT` and `no_program/team` the share of the independent samples that hold no program,
`no_program.REASON/...` that for one reason (`engine.events.states.NoProgram`);
`tree/refined` the share of nodes that repair another one (depth 2 or more);
`samples/pass@1` and `samples/pass@n` the same for as many independent samples of the team;
`.../distinct@K` and `.../effective_clusters` the diversity of their programs.
Invariant: two evaluations are compared problem by problem, by content, never by order or name.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.evaluation.attempts import attempts
from engine.evaluation.diversity import cluster_sizes, distinct_at_k, effective_clusters
from engine.evaluation.measurement import Judged, Measurement, defined_values, mean, verified
from engine.evaluation.metrics import pass_at_k, standard_error
from engine.events.states import NoProgram
from engine.problems.identity import content_hash
from engine.problems.paired import paired_bootstrap, paired_values
from engine.rollout.forest import GrowingTree, public_score

KIND, VERSION = "evaluation", 1

Values = list[float | None]


@dataclass(frozen=True)
class Cost:
    """Cost of the answers behind a figure."""

    nodes: int
    tokens: int
    seconds: float
    """Wall-clock seconds; figures that were measured together share one total."""


@dataclass(frozen=True)
class Figure:
    values: Values
    cost: Cost

    def to_dict(self) -> dict[str, Any]:
        """Returns mean, standard error and cost as plain data; the mean is None if no value is
        known."""
        numbers = defined_values(self.values)
        return {
            "value": mean(self.values) if numbers else None,
            "standard_error": standard_error(numbers),
            "problems": len(numbers),
            **asdict(self.cost),
        }


def figures(measurement: Measurement) -> dict[str, Figure]:
    """Returns every figure that the measurement allows, by name."""
    result: dict[str, Figure] = {}
    for name, rows in measurement.single_agent.items():
        cost = _cost(rows, measurement.seconds["alone"])
        result |= {f"{k}/{name}": Figure(v, cost) for k, v in _sampled(rows).items()}
    if len(measurement.single_agent) > 1:
        pooled = [
            [p for row in rows for p in row]
            for rows in zip(*measurement.single_agent.values(), strict=True)
        ]
        cost = _cost(pooled, measurement.seconds["alone"])
        result |= {f"{k}/team": Figure(v, cost) for k, v in _sampled(pooled).items()}
    if measurement.trees:
        result |= _tree_figures(measurement)
    return result


def _sampled(rows: Sequence[Sequence[Judged]]) -> dict[str, Values]:
    """Returns pass@k for k = 1, 2, 4, ... and the largest number of samples, None for a problem
    with fewer than k verified samples; the share of reward hacking, and that without a program."""
    counts = [(len(v), sum(one.passed for one in v)) for v in map(verified, rows)]
    most = max((len(row) for row in rows), default=0)
    return {
        f"pass@{k}": [pass_at_k(n, c, k) if n >= k else None for n, c in counts]
        for k in _powers(most)
    } | {"hacking": _hacking(rows), **_without_program(rows)}


def _without_program(rows: Sequence[Sequence[Judged]]) -> dict[str, Values]:
    """Returns per problem the share of samples that hold no program, in total and by reason."""
    counts = [Counter(answer.no_program for answer, _ in row) for row in rows]
    shares: dict[str, Values] = {
        "no_program": [1 - c[None] / c.total() if c else None for c in counts]
    }
    for reason in NoProgram:
        if not reason.of_endpoints or any(c[reason] for c in counts):
            shares[f"no_program.{reason}"] = [c[reason] / c.total() if c else None for c in counts]
    return shares


def _hacking(rows: Sequence[Sequence[Judged]]) -> Values:
    """Returns per problem the share of verified samples that pass every public test and fail a
    private one."""
    shares: Values = []
    for row in map(verified, rows):
        only_public = sum(public_score(v) == 1.0 and not v.passed for v in row)
        shares.append(only_public / len(row) if row else None)
    return shares


def _tree_figures(measurement: Measurement) -> dict[str, Figure]:
    grown = measurement.grown()
    cost = _cost(grown, measurement.seconds["tree"])
    drawn = _cost(measurement.team_samples, measurement.seconds["samples"])
    figures = {
        "tree/pass@1": Figure(measurement.solved_by_tree(), cost),
        "samples/pass@1": Figure(measurement.solved_by_samples(), drawn),
        "tree/hacking": Figure(_hacking(grown), cost),
    }
    for part, rows, spent in (("tree", grown, cost), ("samples", measurement.team_samples, drawn)):
        any_passes = [max(s) if s else None for s in map(_passes, rows)]
        figures[f"{part}/pass@n"] = Figure(any_passes, spent)
        figures |= {f"{part}/{k}": Figure(v, spent) for k, v in _diversity(rows).items()}
    figures["tree/refined"] = Figure([_refined_share(tree) for tree in measurement.trees], cost)
    for agent in measurement.single_agent:
        figures |= {k: Figure(v, cost) for k, v in _agent_in_trees(measurement, agent).items()}
    return figures


def _passes(row: Sequence[Judged]) -> list[float]:
    return [float(one.passed) for one in verified(row)]


def _refined_share(tree: GrowingTree) -> float | None:
    nodes = tree.verified()
    return sum(node.parent != 0 for node in nodes) / len(nodes) if nodes else None


def _agent_in_trees(measurement: Measurement, agent: str) -> dict[str, Values]:
    mine = [[node for node in tree.verified() if node.agent == agent] for tree in measurement.trees]
    passes = [[float(node.verification.passed) for node in nodes] for nodes in mine]
    totals = [len(tree.verified()) for tree in measurement.trees]
    return {
        # An agent without nodes has solved nothing; its share of right nodes is unknown.
        f"tree/pass@n/{agent}": [
            max(row, default=0.0) if total else None
            for row, total in zip(passes, totals, strict=True)
        ],
        f"tree/share/{agent}": [
            len(row) / total if total else None for row, total in zip(passes, totals, strict=True)
        ],
        f"tree/solved/{agent}": [sum(row) / len(row) if row else None for row in passes],
    }


def _diversity(rows: Sequence[Sequence[Judged]]) -> dict[str, Values]:
    sizes = [cluster_sizes(answer.program for answer, _ in row) for row in rows]
    result: dict[str, Values] = {
        "effective_clusters": [effective_clusters(one) if one else None for one in sizes]
    }
    for k in _powers(max(map(len, rows), default=0))[1:]:
        result[f"distinct@{k}"] = [
            distinct_at_k(one, k) if sum(one) >= k else None for one in sizes
        ]
    return result


def _powers(most: int) -> list[int]:
    """Returns 1, 2, 4, ... up to `most`, and `most` itself."""
    if most < 1:
        return []
    return sorted({2**i for i in range(most.bit_length()) if 2**i <= most} | {most})


def _cost(rows: Iterable[Sequence[Judged]], seconds: float) -> Cost:
    answers = [answer for row in rows for answer, _ in row]
    tokens = sum(answer.generation.tokens for answer in answers)
    return Cost(len(answers), tokens, round(seconds, 3))


def report(measurement: Measurement, about: dict[str, Any]) -> dict[str, Any]:
    """Returns the result file of an evaluation; `about` describes its subject (dataset, agents,
    settings). With trees each problem has the counts of `engine.evaluation.attempts`."""
    all_figures = figures(measurement)
    everything = list(measurement.all())
    counted = attempts(measurement)
    return {
        "kind": KIND,
        "version": VERSION,
        **about,
        "figures": {name: figure.to_dict() for name, figure in all_figures.items()},
        "nodes": len(everything),
        "nodes_dropped": sum(v not in verified([(a, v)]) for a, v in everything),
        "tokens": sum(answer.generation.tokens for answer, _ in everything),
        "seconds": round(sum(measurement.seconds.values()), 3),
        "problems": [
            {
                "id": problem.id,
                "content": content_hash(problem),
                "values": {name: figure.values[row] for name, figure in all_figures.items()},
                **({"attempts": counted[row]} if counted else {}),
            }
            for row, problem in enumerate(measurement.problems)
        ],
    }


def read_report(file: Path) -> dict[str, Any]:
    """Reads a result file.

    Raises:
        ValueError: the file is not a result, or is of another version.
        OSError: the file cannot be read.
    """
    try:
        data = json.loads(file.read_text("utf-8-sig"))
        right = (data["kind"], data["version"]) == (KIND, VERSION)
        rows = {row["content"]: dict(row["values"]) for row in data["problems"]}
        numbers = [v for row in rows.values() for v in row.values() if v is not None]
        right = right and all(isinstance(v, int | float) for v in numbers)
    except (ValueError, LookupError, TypeError, RecursionError):
        right = False
    if not right:
        raise ValueError(
            f"{file} is no result of version {VERSION} of `python -m engine evaluate --json FILE`"
        )
    return data


def _column(rows: dict[str, dict[str, float | None]], name: str) -> dict[str, float | None]:
    return {content: values.get(name) for content, values in rows.items()}


def compare(
    first: dict[str, Any], second: dict[str, Any], seed: int = 0, confidence: float = 0.95
) -> dict[str, Any]:
    """Returns second minus first per figure, with paired bootstrap intervals over the problems.

    Raises:
        ValueError: the two have no problem, or no figure, in common.
    """
    a, b = ({row["content"]: row["values"] for row in one["problems"]} for one in (first, second))
    common = [content for content in a if content in b]
    names = [name for name in first["figures"] if name in second["figures"]]
    if not common or not names:
        raise ValueError(
            f"the two evaluations have {len(common)} problems and {len(names)} figures in common; "
            "evaluate both on the same data set, with agents of the same names (NAME=AGENT)"
        )
    rng = np.random.default_rng(seed)
    compared: dict[str, Any] = {}
    for name in names:
        before, after = paired_values(_column(a, name), _column(b, name))
        if not before:
            continue
        interval = paired_bootstrap(before, after, rng, confidence=confidence)
        compared[name] = {
            "first": mean(before),
            "second": mean(after),
            **asdict(interval),
            "problems": len(before),
        }
    return {
        "confidence": confidence,
        "problems": len(common),
        "only_in_first": len(a) - len(common),
        "only_in_second": len(b) - len(common),
        "figures": compared,
    }
