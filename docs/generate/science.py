"""The pages of the scientific claims, from their results in `docs/science/results`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.claims.catalogue import CLAIMS
from benchmarks.claims.claim import Arm, Claim, Figure
from benchmarks.claims.record import ClaimRecord, claim_record
from benchmarks.claims.statistics import (
    CONFIDENCE,
    ENOUGH_SEEDS,
    Comparison,
    Outcome,
    Verdict,
    mean_interval,
    reaches,
)
from docs.generate import markdown, tree_pays
from docs.generate.markdown import code, table

FOLDER = Path(__file__).resolve().parents[1] / "science" / "results"
PLACES = {"learned_tokens": 0, "seconds": 0, "effective_clusters": 2}
"""Decimals by the last part of a figure's name; 3 for rates."""
WORDS = {
    Outcome.SEEN: "Seen",
    Outcome.NOT_SEEN: "Not seen",
    Outcome.OPPOSITE: "Not seen; for an arm the opposite is seen",
    Outcome.UNKNOWN: "Not decided",
}
INDEX = """
What Grove's method claims, tested on the two starters, *oak* and *fern*, models of half a million
weights, on problems of the built-in generator. Each claim names a control and arms that differ from
it in one thing. The same seed is the same problems in the same order for every arm. A claim is
written down as not seen where it is not seen.

How a claim is decided:

- Each arm is a training run of the engine in deterministic mode, and an evaluation of its final
  weights on problems of compositions that it has not seen; some claims compare searches with the
  same weights. [The algorithm](../algorithm.md#9-metrics) defines the figures; EA is the effective
  number of clusters of different programs.
- The difference of an arm and its control is taken seed by seed, and its 95 % interval is Student's
  t over the seeds. An arm is better or worse only if the interval excludes 0; otherwise no
  difference is seen, and the page says which difference would have been. A claim is seen if all of
  its arms agree with it.
- One figure of each claim, named before it was measured, decides. Others are shown without a
  correction for their number.
- Budgets (nodes, learned tokens, weights) are counted in the run's own events. Where they should be
  equal and are not, the page says so: nodes must be the same, learned tokens and weights within
  10 %.
- Every search of an evaluation keeps one node in flight (`evaluation.nodes_in_flight = 1`), so that
  each expansion knows the verdicts of all earlier ones.
  [With more](../results.md#when-a-tree-beats-samples) a part of a tree is opened before there is a
  verdict.
- A claim takes {enough} seeds per arm; with fewer its page says that they are too few.

What the claims about trees and samples say together is on the page
[When does a tree pay?](when-a-tree-pays.md)

The runs are small, about a minute of two cores each: {budget}. They show the direction of a large
effect at this size, and nothing about models of practical size.
"""
REMAKE = """
The commands that measure what is missing, and write the pages. The first goes on where it was
interrupted, and does nothing where every result is present:

<!-- not run: hours; tests/benchmarks/claims/test_runner.py runs a tiny claim -->
```sh
.venv/bin/python -m benchmarks claims {arguments}
.venv/bin/python -m docs.generate
```
"""


def pages(folder: Path = FOLDER) -> dict[str, str]:
    """Returns the text of every page, by path from the repository's root."""
    records = [claim_record(claim, folder) for claim in CLAIMS]
    made = {"docs/science/index.md": _index(records)}
    made |= tree_pays.pages(folder, folder.parent / "evaluations")
    return made | {f"docs/science/{one.claim.name}.md": _page(one) for one in records}


def _index(records: list[ClaimRecord]) -> str:
    measured = [one for one in records if one.all()]
    plans = list(dict.fromkeys(_plan(one) for one in measured or records))
    about = INDEX.format(enough=ENOUGH_SEEDS, budget="; or ".join(plans))
    rows = [
        (f"[{one.claim.title}]({one.claim.name}.md)", _outcome(one), _seeds(one),
         _summary(one)) for one in records
    ]  # fmt: skip
    head = ("claim", "outcome", "seeds", "difference to the control")
    return markdown.page(
        "Scientific claims", about, table(head, rows), REMAKE.format(arguments="--seeds 10")
    )


def _outcome(record: ClaimRecord) -> str:
    if not record.all():
        return "Not measured"
    said = WORDS[record.outcome()]
    return f"{said}, too few seeds" if min(record.seeds()) < ENOUGH_SEEDS else said


def _seeds(record: ClaimRecord) -> str:
    fewest, most = record.seeds()
    return str(fewest) if fewest == most else f"{fewest} to {most}"


def _summary(record: ClaimRecord) -> str:
    figure = _figure(record.claim, record.claim.primary)
    parts = [
        f"{arm.name} {_difference(record.comparison(arm, figure.name), figure)}"
        for arm in record.tested()
        if record.comparison(arm, figure.name).interval
    ]
    return f"{figure.label}: {', '.join(parts)}" if parts else ""


def _page(record: ClaimRecord) -> str:
    claim = record.claim
    blocks = [f"**Statement.** {claim.statement}", claim.note, *_one_step(claim), _arms(claim)]
    if not record.all():
        blocks.append("**Not measured yet.**")
    else:
        blocks += [
            f"## {WORDS[record.outcome()]}",
            *_verdicts(record),
            "## Figures",
            f"Mean over the seeds, ± half of its {CONFIDENCE:.0%} interval. Seconds are those of "
            "the clock, and depend on what else the machine did.",
            _means(record),
            *_differences(record),
            "## Budgets",
            _budgets(record),
            *_mismatches(record),
            "## Conditions",
            *_conditions(record),
        ]
    seeds = max((one.seed for one in record.all()), default=ENOUGH_SEEDS)
    arguments = f"{claim.name} --seeds {seeds}{_options(record)}"
    blocks.append(REMAKE.format(arguments=arguments))
    return markdown.page(claim.title, *blocks)


def _one_step(claim: Claim) -> Iterator[str]:
    if claim.minibatches == 1 and any(arm.trained for arm in claim.arms):
        yield "Trainings take one optimizer step per batch: no ratio leaves 1, and no loss clips."


def _options(record: ClaimRecord) -> str:
    usual, own = asdict(record.claim.plan), asdict(record.plan)
    return "".join(f" --{name} {own[name]}" for name in own if own[name] != usual[name])


def _arms(claim: Claim) -> str:
    rows = [
        (arm.name, arm.about, control.name if (control := claim.control_of(arm)) else "control")
        for arm in claim.arms
    ]
    return table(("arm", "", "compared with"), rows)


def _verdicts(record: ClaimRecord) -> Iterator[str]:
    figure = _figure(record.claim, record.claim.primary)
    lines = []
    for arm in record.tested():
        comparison = record.comparison(arm, figure.name)
        control = record.claim.control_of(arm)
        assert control is not None
        lines.append(f"- {arm.name} against {control.name}, {figure.label}: "
                     f"{_sentence(comparison, figure)}{_shown(arm)}")  # fmt: skip
    yield "\n".join(lines)
    yield from _goal(record, figure)
    if min(record.seeds()) < ENOUGH_SEEDS:
        yield (
            f"**Too few seeds.** A comparison has {_seeds(record)} of the {ENOUGH_SEEDS} seeds "
            "that a claim takes; with so few, intervals are wide and a verdict is preliminary."
        )


def _shown(arm: Arm) -> str:
    return "" if arm.decides else " It does not decide."


def _goal(record: ClaimRecord, figure: Figure) -> Iterator[str]:
    """Yields whether the arms that decide reach the claim's goal."""
    goal = record.claim.goal
    for arm in record.deciding() if goal is not None else ():
        comparison = record.comparison(arm, figure.name)
        if comparison.interval is not None:
            reached = "reached" if reaches(comparison, goal) else "missed"
            clear = ", with an interval that excludes 0," if goal > 0 else ""
            least = f"{goal:+.{_places(figure)}f}".replace("-", "−")
            yield f"The goal, a difference of at least {least}{clear} is {reached}."


def _sentence(comparison: Comparison, figure: Figure) -> str:
    if comparison.verdict is Verdict.UNKNOWN:
        return f"not decided, seeds in common: {comparison.seeds}."
    assert comparison.detectable is not None
    said = f"{comparison.verdict}, {_difference(comparison, figure)} over {comparison.seeds} seeds"
    if comparison.verdict is Verdict.NO_DIFFERENCE:
        shown = _number(comparison.detectable, figure)
        return f"{said}; a mean difference of {shown} or more would have been seen."
    return f"{said}."


def _means(record: ClaimRecord) -> str:
    """Returns a row for each figure and a column for each arm, which fits on a page."""
    arms = record.claim.arms
    rows = [("seeds", *(str(len(record.results[arm.name])) for arm in arms))]
    rows += [
        (figure.label, *(_mean_of(record, arm, figure) for arm in arms))
        for figure in record.claim.figures
    ]
    return table(("", *(arm.name for arm in arms)), rows)


def _mean_of(record: ClaimRecord, arm: Arm, figure: Figure) -> str:
    mean, half = mean_interval(record.values(arm, figure.name))
    shown = "" if mean is None else _number(mean, figure)
    return shown if half is None else f"{shown} ± {_number(half, figure)}"


def _differences(record: ClaimRecord) -> Iterator[str]:
    arms = record.tested()
    if not any(record.comparison(arm, record.claim.primary).interval for arm in arms):
        return
    yield (
        f"Difference to the control, and its {CONFIDENCE:.0%} interval, paired by seed; bold where "
        "it excludes 0."
    )
    rows = [
        (figure.label, *(_difference_of(record, arm, figure) for arm in arms))
        for figure in record.claim.figures
        if not _of_shared_training(record, figure)
    ]
    yield table(("", *(arm.name for arm in arms)), rows)


def _of_shared_training(record: ClaimRecord, figure: Figure) -> bool:
    """Returns whether a figure is of a training that an arm has in common with its control."""
    shared = all(
        (arm.recipe, arm.settings) == (control.recipe, control.settings)
        for arm in record.tested()
        if (control := record.claim.control_of(arm))
    )
    return shared and figure.name.startswith("training/")


def _difference_of(record: ClaimRecord, arm: Arm, figure: Figure) -> str:
    comparison = record.comparison(arm, figure.name)
    if comparison.interval is None:
        return ""
    shown = _difference(comparison, figure)
    differs = comparison.verdict in (Verdict.BETTER, Verdict.WORSE)
    return f"**{shown}**" if differs else shown


def _difference(comparison: Comparison, figure: Figure) -> str:
    interval = comparison.interval
    assert interval is not None
    places = _places(figure)
    difference, low, high = (
        f"{round(value, places) + 0.0:+,.{places}f}".replace("-", "−")  # and no −0.000
        for value in (interval.difference, interval.low, interval.high)
    )
    return f"{difference} ({low} to {high})"


def _budgets(record: ClaimRecord) -> str:
    keys = {
        "nodes": "training nodes",
        "learned_nodes": "learned nodes",
        "learned_tokens": "learned tokens",
        "filtered_trees": "filtered trees",
        "failed": "failed nodes",
        "parameters": "weights",
        "tree_answers": "answers of the trees",
        "samples_answers": "answers of samples",
    }
    arms = record.claim.arms
    results = [record.results[arm.name].values() for arm in arms]
    rows = [
        (label, *(_mean([one.budget.get(key) for one in of_arm]) for of_arm in results))
        for key, label in keys.items()
        if any(key in one.budget for one in record.all())
    ]
    return table(("mean per seed", *(arm.name for arm in arms)), rows)


def _mean(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):,.0f}" if known else ""


def _mismatches(record: ClaimRecord) -> Iterator[str]:
    lines = [
        f"- {arm}, seed {seed}: {'; '.join(sentences)}"
        for arm, seeds in record.mismatches().items()
        for seed, sentences in sorted(seeds.items())
    ]
    if lines:
        yield "**Budgets that should be equal to the control's and are not** (arm and control):"
        yield "\n".join(lines)
    elif max(record.seeds()):
        yield "All budgets that the claim holds equal are equal to the control's."


def _conditions(record: ClaimRecord) -> Iterator[str]:
    results = record.all()
    versions = {f"{k} {v}" for one in results for k, v in one.versions.items()}
    grove = {f"{one.grove} ({one.commit})" for one in results}
    recipes = {f"`{one.recipe}` version {one.recipe_version}" for one in results}
    resumed = sum(one.resumed for one in results)
    rows = [
        ("each cell", _plan(record)),
        ("machine", "; ".join(sorted({one.machine for one in results}))),
        ("Grove", "; ".join(sorted(grove))),
        ("libraries", ", ".join(sorted(versions))),
        ("recipes", ", ".join(sorted(recipes))),
        ("measured", f"{min(o.finished_at for o in results)} to "
                     f"{max(o.finished_at for o in results)} UTC"),
        ("interrupted and resumed", str(resumed)),
        ("results", code(f"docs/science/results/{record.claim.name}/")),
    ]  # fmt: skip
    if record.left_out:
        names = ", ".join(record.left_out)
        rows.append(("left out", f"results of other settings or sizes: {names}"))
    yield table(("", ""), rows)


def _plan(record: ClaimRecord) -> str:
    plan = record.plan
    trained = any(arm.trained for arm in record.claim.arms)
    training = f"{plan.steps} training steps of {plan.trees} trees of 8 nodes" if trained else ""
    evaluation = f"{plan.problems} problems to evaluate, with {plan.samples} samples each"
    return f"{training}, and {evaluation}" if trained else f"no training, and {evaluation}"


def _figure(claim: Claim, name: str) -> Figure:
    return next(one for one in claim.figures if one.name == name)


def _number(value: float, figure: Figure) -> str:
    return f"{value:,.{_places(figure)}f}"


def _places(figure: Figure) -> int:
    return PLACES.get(figure.name.rpartition("/")[2], 3)
