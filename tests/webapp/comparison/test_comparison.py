"""Tests of the comparison of several runs: differing settings, curves, paired evaluations."""

import numpy as np
import pytest
from django.urls import reverse

from engine.problems.paired import paired_bootstrap
from engine.recipes import load_recipe
from tests.helpers.builders import a_held_run, a_run, an_event
from webapp.comparison.comparison import is_curve, pairs, sentence, settings_that_differ
from webapp.experiments.models import Run
from webapp.telemetry.ingest.ingest import ingest

CONTENTS = [f"{index:016x}" for index in range(40)]


def evaluated(cast, solved, contents=CONTENTS, split="test"):
    """A run whose newest evaluation solved the first `solved` problems."""
    run, fencing = a_held_run(cast)
    values = [float(index < solved) for index in range(len(contents))]
    payload = {"step": 4, "split": split, "contents": contents, "outcomes": {"pass@1/oak": values}}
    older = {**payload, "step": 0, "outcomes": {"pass@1/oak": [0.0] * len(contents)}}
    events = [an_event(1, "eval.outcomes", **older), an_event(2, "eval.outcomes", **payload)]
    ingest(run.pk, fencing, events)
    run.refresh_from_db()
    return run


def test_only_differing_settings_are_listed_by_path(cast):
    changes = [{}, {"search.nodes_per_tree": 4, "agents.second.model": "starter:oak"}]
    configs = [load_recipe("mars2", one).model_dump(mode="json") for one in changes]
    runs = [a_run(cast, config=config) for config in configs]
    rows = {row["path"]: row["values"] for row in settings_that_differ(runs)}
    assert set(rows) == {"search.nodes_per_tree", "agents.second.model"}
    assert rows["search.nodes_per_tree"][1] == "4"
    assert settings_that_differ([runs[0], runs[0]]) == []


def test_a_pair_is_the_paired_bootstrap_over_the_problems_that_both_know(cast):
    first = evaluated(cast, 10)
    other = evaluated(cast, 25, contents=[*reversed(CONTENTS[:30]), "f" * 16])
    (pair,) = pairs([first, other], "test")
    (figure,) = pair.figures
    # By content: of problems 0 to 29 the first run solved 0 to 9, the other 5 to 29.
    a = [float(index < 10) for index in range(30)]
    b = [float(index >= 5) for index in range(30)]
    expected = paired_bootstrap(a, b, np.random.default_rng(0))
    assert figure.problems == 30 and figure.first == pytest.approx(10 / 30)
    assert (figure.difference, figure.low, figure.high) == (
        expected.difference, expected.low, expected.high,
    )  # fmt: skip
    assert figure.sentence.startswith("B is 50.0 points above A, 95 % interval ")


@pytest.mark.parametrize(
    "figures, words",
    [
        ((0.041, 0.009, 0.074), "B is 4.1 points above A, 95 % interval 0.9 to 7.4, 300 problems"),
        ((-0.041, -0.074, -0.009),
         "B is 4.1 points below A, 95 % interval 0.9 to 7.4, 300 problems"),
        ((0.01, -0.02, 0.04), "No difference is certain: B minus A is 1.0 points, "
         "95 % interval -2.0 to 4.0, 300 problems"),
    ],
)  # fmt: skip
def test_a_difference_is_described_in_words(figures, words):
    assert sentence(("A", "B"), *figures, 300) == words


def test_runs_that_cannot_be_compared_say_why(cast):
    first, bare = evaluated(cast, 10), a_run(cast)
    assert "no per-problem results of B" in pairs([first, bare], "test")[0].missing
    strange = evaluated(cast, 3, contents=["e" * 16])
    assert "no common problems" in pairs([first, strange], "test")[0].missing


def test_the_page_names_the_curves_of_each_run_and_where_their_buckets_are(client, cast):
    run, fencing = a_held_run(cast)
    step = {"step": 1, "reward": 0.25, "solved": 0.5, "seconds": 1.0, "training_seconds": 1.0}
    update = {"agent": "oak", "step": 1, "entropy": 1.0, "gradient_norm": 2.0}
    ingest(
        run.pk, fencing, [an_event(1, "step.end", **step), an_event(2, "agent.update", **update)]
    )
    client.force_login(cast.vera)
    page = client.get(reverse("compare"), {"run": [run.pk, a_run(cast).pk]}).context["page"]
    assert [one["label"] for one in page["runs"]] == ["A", "B"]
    body = client.get(page["runs"][0]["url"]).json()["metrics"]
    drawn = {one["name"] for one in body if is_curve(one["name"])}
    assert drawn == {"reward", "solved", "step.seconds", "entropy.oak"}
    assert "gradient_norm.oak" in [one["name"] for one in body]


def test_the_page_and_rest_return_the_same(client, cast):
    runs = [evaluated(cast, 10), evaluated(cast, 38)]
    client.force_login(cast.vera)
    address = {"run": [run.pk for run in runs]}
    page = client.get(reverse("compare"), address)
    body = client.get("/api/v1/comparison", address).json()
    words = body["evaluations"][0]["figures"][0]["sentence"]
    assert words.startswith("B is 70.0 points above A") and words in page.content.decode()
    assert [run["id"] for run in body["runs"]] == [str(run.pk) for run in runs]
    empty = client.get(reverse("compare"))
    assert b"Select two runs" in empty.content


def test_runs_of_others_are_not_compared(client, cast):
    runs = [evaluated(cast, 10), evaluated(cast, 38)]
    client.force_login(cast.charlie)
    for address in (reverse("compare"), "/api/v1/comparison"):
        assert client.get(address, {"run": [run.pk for run in runs]}).status_code == 404
    assert Run.objects.filter(pk=runs[0].pk).exists()


@pytest.mark.parametrize("query", ["run=x", "split=train", "&".join(["run=x"] * 9)])
def test_an_address_that_cannot_be_is_refused(client, cast, query):
    client.force_login(cast.bob)
    assert client.get(f"{reverse('compare')}?{query}").status_code == 400
