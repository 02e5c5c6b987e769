"""Comparison of runs: settings that differ, curves, and paired evaluations.

Invariants: the first run is the baseline; evaluations are compared on the problems that both runs
were evaluated on, matched by content; an interval that contains 0 is never reported as a
difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.config.errors import ConfigError
from engine.config.schema import parse_config
from webapp.experiments.comparison.intervals import CONFIDENCE, Aligned, Budget, interval
from webapp.experiments.models import Run
from webapp.experiments.run_settings.settings_schema import flat
from webapp.experiments.run_settings.toml import value_text
from webapp.telemetry.models import Event
from webapp.telemetry.presentation import charts_of

MOST_RUNS = 8
SPLITS = ("test", "validation")
_IGNORED = {"recipe_version"}
CURVES = ("validation.agent", "validation.tree", "validation.samples", "reward", "solved",
          "entropy", "kl", "step.seconds")  # fmt: skip
"""Metrics that are drawn, each with all its parts (`entropy.oak`)."""


@dataclass(frozen=True)
class Difference:
    """One figure of two evaluations. `sentence` describes it in words."""

    figure: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    problems: int
    sentence: str


@dataclass(frozen=True)
class Pair:
    """Comparison of a run with the first one; `missing` gives the reason if it has no figure."""

    run: Run
    label: str
    split: str
    steps: tuple[int, int] | None
    figures: list[Difference]
    missing: str = ""


def page(runs: Sequence[Run], split: str) -> dict[str, Any]:
    """Returns the template's context, see `views.compare`."""
    names = labels_of(runs)
    context = {
        "compared": labelled(runs),
        "split": split,
        "splits": SPLITS,
        "page": {"labels": names, "curves": CURVES, "runs": []},
    }
    if len(runs) < 2:
        return context
    return context | {
        "settings": settings_that_differ(runs),
        "pairs": pairs(runs, split),
        "confidence": f"{100 * CONFIDENCE:.0f} %",
        "page": {"labels": names, "curves": CURVES, "runs": charted(runs)},
    }


def labels_of(runs: Sequence[Run]) -> list[str]:
    """Returns A, B, C ...: the labels of the runs in tables and sentences."""
    return [chr(ord("A") + place) for place in range(len(runs))]


def settings_that_differ(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Returns [{path, values}] of settings that are not the same in all runs; a value as TOML, or
    None where a run has no such setting."""
    found = [flat(_with_defaults(run.config)) for run in runs]
    paths = dict.fromkeys(path for settings in found for path in settings)
    rows = []
    for path in paths:
        values = [value_text(one[path]) if path in one else None for one in found]
        if path not in _IGNORED and len(set(values)) > 1:
            rows.append({"path": path, "values": values})
    return rows


def _with_defaults(config: dict[str, Any]) -> dict[str, Any]:
    """Adds defaults: a run of an older version lacks settings that were added since."""
    try:
        return parse_config(config).model_dump(mode="json")
    except ConfigError:
        return config


def pairs(runs: Sequence[Run], split: str) -> list[Pair]:
    """Compares every other run with the first, on the newest evaluation of a split."""
    outcomes = [_newest(run, split) for run in runs]
    names, budget = labels_of(runs), Budget()
    return [
        _pair(run, (names[0], label), split, outcomes[0], other, budget)
        for run, label, other in zip(runs[1:], names[1:], outcomes[1:], strict=True)
    ]


def _newest(run: Run, split: str) -> dict[str, Any] | None:
    told = Event.objects.filter(run=run, kind="eval.outcomes", payload__split=split)
    found = told.order_by("-seq").values_list("payload", flat=True).first()
    return found if found and found["contents"] else None


def _pair(
    run: Run,
    names: tuple[str, str],
    split: str,
    a: dict | None,
    b: dict | None,
    budget: Budget,
) -> Pair:
    if a is None or b is None:
        who = " and ".join(name for name, one in zip(names, (a, b), strict=True) if one is None)
        reason = f"there are no results problem by problem of {who} on the {split} split yet"
        return Pair(run, names[1], split, None, [], reason)
    steps = (a["step"], b["step"])
    figures = differences(names, a, b, budget)
    reason = "" if figures else "they were measured on other problems, or have no agent in common"
    return Pair(run, names[1], split, steps, figures, reason)


def differences(names: tuple[str, str], a: dict, b: dict, budget: Budget) -> list[Difference]:
    """Returns every figure that two `eval.outcomes` payloads share on common problems."""
    aligned = Aligned(a, b)
    found = []
    for figure in aligned.figures():
        before, after = aligned.values(figure)
        if not len(before):
            continue
        one = interval(before, after, budget)
        found.append(
            Difference(
                figure,
                float(before.mean()),
                float(after.mean()),
                one.difference,
                one.low,
                one.high,
                len(before),
                sentence(names, one.difference, one.low, one.high, len(before)),
            )
        )
    return found


def sentence(
    names: tuple[str, str], difference: float, low: float, high: float, problems: int
) -> str:
    """Returns "B is 4.1 points above A, 95 % interval 0.9 to 7.4, 300 problems"; differences are
    shares."""
    one, other = names
    known = low > 0 or high < 0
    ends = (-high, -low) if known and difference < 0 else (low, high)
    interval = f"{100 * CONFIDENCE:.0f} % interval {100 * ends[0]:.1f} to {100 * ends[1]:.1f}"
    sure = f"{interval}, {problems} problems"
    if not known:
        told = f"{other} minus {one} is {100 * difference:.1f} points, {sure}"
        return f"No difference is certain: {told}"
    side = "above" if difference > 0 else "below"
    return f"{other} is {100 * abs(difference):.1f} points {side} {one}, {sure}"


def charted(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Returns the runs as charts need them (`telemetry.presentation`), by their labels."""
    return [charts_of(run) | {"label": name} for run, name in labelled(runs)]


def labelled(runs: Sequence[Run]) -> list[tuple[Run, str]]:
    return list(zip(runs, labels_of(runs), strict=True))


def is_curve(name: str) -> bool:
    """Returns whether a comparison draws the metric."""
    return any(name == one or name.startswith(f"{one}.") for one in CURVES)
