"""The page "When does a tree pay?", and its picture, from the results in `docs/science`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.claims.odds import Ratio
from benchmarks.claims.tree_pays import LEAST_REPAIRS, LEAST_SEEDS, Missing, Point, points
from docs.generate import markdown, scatter
from docs.generate.markdown import table
from docs.generate.scatter import Mark

NAME = "when-a-tree-pays"
ABOUT = """
A node of a tree is either a fresh answer to the problem or a repair of an earlier program. A tree
is worth more than as many independent samples where a repair is right more often than a fresh
answer: where feedback of the tests says something that the statement does not, and the model can
use it. Each point is a team on a family of problems:

- **x**, the chance that a repair of a wrong program is right over the chance that a fresh answer
  is, counted in the trees of the evaluation; the same number is on the card *Team* of a run's page.
  Repairs are of problems that a first answer missed, harder ones than the average; the last column
  but one compares them with fresh answers to the same problems.
- **y**, Pass@1 of the answer that a tree selects, minus that of as many independent samples, of
  which the same rule selects.

Intervals are 95 %: of y Student's t over the seeds (problems, for a model that is no starter), of x
the jackknife over them. Points with fewer than {least} repairs, or {seeds} seeds, are left out.
"""
READING = """
Numbers in the picture are readings of an underspecified statement; points without one are all
problems of a family. Hollow points are teams before training.
"""
MORE = """
The commands that measure the points and draw them. A further model is a point as soon as its report
lies in `docs/science/evaluations`; the name of the file names it:

<!-- not run: hours, and the last but one needs a pretrained model and MBPP -->
```sh
.venv/bin/python -m benchmarks claims tree-samples tree-samples-starters underspecified \\
    underspecified-starters several-details several-details-starters --seeds 10 \\
    --arms tree-8 samples-8 tree-16 samples-16
.venv/bin/python -m engine evaluate --agents writer=package:smollm2 second=package:smollm2 \\
    --dataset mbpp-test.jsonl --problems 30 --nodes 16 --samples 1 \\
    --json docs/science/evaluations/NAME.json --set evaluation.temperature=0.8 \\
    evaluation.nodes_in_flight=4 agents.writer.role="$WRITER" agents.second.role="$CHECKER" \\
    agents.writer.sampling.max_new_tokens=128 agents.second.sampling.max_new_tokens=128
.venv/bin/python -m docs.generate
```
"""


def pages(results: Path, reports: Path) -> dict[str, str]:
    """Returns the page and its picture, by path from the repository's root, from the claims'
    results and the reports of other models."""
    found, missing = points(results, reports)
    blocks = [*_picture(found), *_left_out(missing), *_smollm2(found)]
    page = markdown.page(
        "When does a tree pay?", ABOUT.format(least=LEAST_REPAIRS, seeds=LEAST_SEEDS), *blocks, MORE
    )
    made = {f"docs/science/{NAME}.md": page}
    return made | ({f"docs/science/{NAME}.svg": _drawing(found)} if found else {})


def _picture(found: Sequence[Point]) -> Iterator[str]:
    if not found:
        yield "No result has the counts of repairs yet."
        return
    yield f"![{_alt(found)}]({NAME}.svg)"
    yield READING
    yield table(
        ("team", "problems", "nodes", "over", "fresh right", "repair right", "x",
         "x on the same problems", "y, tree minus samples"),
        (_row(one) for one in found),
    )  # fmt: skip


def _alt(found: Sequence[Point]) -> str:
    above = [one for one in found if one.odds.value > 1]
    gaining = sum(one.gain.difference > 0 for one in above)
    below = [one for one in found if one.odds.value <= 1]
    losing = sum(one.gain.difference > 0 for one in below)
    return (
        f"Gain of a tree over samples by the odds of a repair: it is above 0 for {gaining} of "
        f"{len(above)} points with x above 1, and for {losing} of {len(below)} others"
    )


def _row(one: Point) -> tuple[str, ...]:
    problems = one.problems if one.readings is None else f"{one.readings} readings"
    where = f"[{one.team}]({one.source}.md)" if one.unit == "seeds" else one.team
    gain = one.gain
    return (
        where,
        problems,
        str(one.nodes),
        f"{one.units} {one.unit}",
        f"{one.fresh:.3f}",
        f"{one.repair:.3f}",
        _ratio(one.odds),
        _ratio(one.odds_on_same),
        f"{_signed(gain.difference)} ({_signed(gain.low)} to {_signed(gain.high)})",
    )


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.2f}"
    return f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def _signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:+.3f}".replace("-", "−")


def _left_out(missing: Sequence[Missing]) -> Iterator[str]:
    if missing:
        names = ", ".join(f"[{one.claim}]({one.claim}.md) ({one.nodes} nodes)" for one in missing)
        yield (
            f"Not drawn, since their repairs are not counted, or in too few seeds: {names}. The "
            "first command below measures them."
        )


def _smollm2(found: Sequence[Point]) -> Iterator[str]:
    mine = [one for one in found if one.team.startswith("smollm2")]
    said = (
        "**SmolLM2 on MBPP.** A tree of 16 nodes answered 0.067 of 30 problems, 16 samples 0.167 "
        "([Results](../results.md#pretrained-models)). "
    )
    if not mine:
        yield said + (
            "That evaluation counted no repairs, so that its x is not known: 41 % of the nodes "
            "were repairs, and one answer is right in 3 of 100. The second command measures it."
        )
    for one in mine:
        x, gain = one.odds.value, one.gain
        same = one.odds_on_same
        missed = f", {same.value:.2f} times on the problems that were repaired" if same else ""
        yield said + (
            f"Measured again with counts, over {one.units} problems and {one.nodes} nodes: a "
            f"repair is right in {one.repair:.1%} and a fresh answer in {one.fresh:.1%}, {x:.2f} "
            f"times as often{missed}; tree minus samples {_signed(gain.difference)} "
            f"({_signed(gain.low)} to {_signed(gain.high)})."
        )


def _drawing(found: Sequence[Point]) -> str:
    marks = [
        Mark(
            x=one.odds.value,
            x_low=one.odds.low,
            x_high=one.odds.high,
            y=one.gain.difference,
            y_low=one.gain.low,
            y_high=one.gain.high,
            group=one.problems,
            is_filled=one.trained,
            label="" if one.readings is None else str(one.readings),
        )
        for one in found
    ]
    return scatter.drawing(
        marks,
        title="When does a tree pay?",
        x_title="chance that a repair is right / chance that a fresh answer is right",
        y_title="Pass@1, tree minus as many samples",
        filled=("before training", "trained"),
    )
