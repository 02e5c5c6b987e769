"""Tests of aliases, promotion by one or two people, evaluations, cards, lineage, comparison."""

import pytest
from django.urls import reverse

from engine.config.problems import ProblemsConfig
from tests.helpers.builders import a_held_run, a_registry, a_run, an_event
from webapp.datasets.models import DatasetVersion
from webapp.datasets.services import version_of
from webapp.experiments.models import Run
from webapp.projects.models import Membership, Role
from webapp.registry.deletion import delete_evaluation, delete_version
from webapp.registry.errors import RegistryRefused
from webapp.registry.evaluations import EvaluationSettings, evaluate, record_figures
from webapp.registry.models import Alias, Model, ModelVersion, Promotion, PromotionState
from webapp.registry.promotion import approve, promote, refuse, set_second_pair
from webapp.registry.selectors import visible_version
from webapp.registry.versions import comparison
from webapp.registry.versions.cards import card
from webapp.registry.versions.lineage import lineage
from webapp.registry.versions.metrics import evaluations_of, metrics_of
from webapp.telemetry.ingest.ingest import ingest


@pytest.fixture
def model(cast):
    a_registry(cast)
    Promotion.objects.all().delete()
    return Model.objects.get(project=cast.project)


@pytest.fixture
def versions(model):
    return list(model.versions.order_by("number"))


def means(model, name="champion"):
    return Alias.objects.filter(model=model, name=name).values_list(
        "version__number", flat=True
    ).first()  # fmt: skip


def test_an_alias_means_one_version_and_its_moves_are_kept(cast, model, versions):
    first, second = versions
    promote(model, "champion", first, "It is the first.", cast.mia)
    promote(model, "champion", second, "It is better.", cast.alice)
    assert means(model) == 2 and Alias.objects.count() == 1
    promote(model, "champion", None, "It fails.", cast.alice)
    assert means(model) is None
    moves = Promotion.objects.order_by("pk").values_list("previous", "number", "asked_by__username")
    assert list(moves) == [(None, 1, "mia"), (1, 2, "alice"), (2, None, "alice")]


@pytest.mark.parametrize(
    "alias, reason, why",
    [("Champion!", "r", "cannot be an alias"), ("champion", "  ", "needs a reason"),
     ("champion", "r", "points to oak v1 already"), ("nobody", "r", "does not exist")],
)  # fmt: skip
def test_a_move_that_makes_no_sense_is_refused(cast, model, versions, alias, reason, why):
    promote(model, "champion", versions[0], "It is the first.", cast.mia)
    expected = versions[0] if alias == "champion" else None
    with pytest.raises(RegistryRefused, match=why):
        promote(model, alias, expected, reason, cast.alice)


def test_with_an_approval_policy_a_promotion_needs_two_people(cast, model, versions):
    set_second_pair(cast.project.workspace, True, cast.alice)
    requested = promote(model, "champion", versions[1], "It is better.", cast.alice)
    assert requested.state == PromotionState.WAITING and means(model) is None
    with pytest.raises(RegistryRefused, match="Another person"):
        approve(requested.pk, "I agree with myself.", cast.alice)
    with pytest.raises(RegistryRefused, match="is pending already"):
        promote(model, "champion", versions[0], "Or this.", cast.mia)
    with pytest.raises(RegistryRefused, match="pending promotion: champion"):
        delete_version(versions[1])
    approve(requested.pk, "Agreed.", cast.mia)
    assert means(model) == 2
    for decide in (approve, refuse):
        with pytest.raises(RegistryRefused, match="decided already"):
            decide(requested.pk, "Again.", cast.mia)


def test_a_refused_or_withdrawn_promotion_moves_nothing(cast, model, versions):
    set_second_pair(cast.project.workspace, True, cast.alice)
    for who, state in ((cast.mia, "refused"), (cast.bob, "withdrawn")):
        requested = promote(model, "champion", versions[1], "It is better.", cast.bob)
        assert refuse(requested.pk, "No.", who).state == state
    assert means(model) is None


def test_a_member_requests_and_a_maintainer_approves_by_rest(client, cast, model):
    address = f"/api/v1/models/{model.pk}/promotions"
    body = {"alias": "champion", "version": 2, "reason": "It is better."}

    def post(who, path, sent):
        client.force_login(who)
        return client.post(path, sent, content_type="application/json")

    assert post(cast.bob, address, body).status_code == 403
    set_second_pair(cast.project.workspace, True, cast.alice)
    proposal = post(cast.bob, address, body).json()
    decide = f"/api/v1/models/promotions/{proposal['id']}/approve"
    assert post(cast.bob, decide, {}).status_code == 403
    assert post(cast.mia, decide, {"words": "Yes."}).json()["decided_by"] == "mia"
    client.force_login(cast.vera)
    assert client.get(f"/api/v1/models/{model.pk}").json()["aliases"] == {"champion": 2}


def test_a_user_who_lost_the_right_cannot_approve(client, cast, model, versions):
    set_second_pair(cast.project.workspace, True, cast.alice)
    requested = promote(model, "champion", versions[1], "It is better.", cast.bob)
    Membership.objects.filter(user=cast.mia).update(role=Role.MEMBER)
    client.force_login(cast.mia)
    answer = client.post(reverse("decide-promotion", args=[requested.pk]), {"do": "approve"})
    assert answer.status_code == 403 and means(model) is None


def measured(cast, version, dataset, values):
    """An evaluation whose run has reported these values of pass@1, problem by problem."""
    run, fencing = a_held_run(cast)
    evaluation = evaluate(version, dataset, EvaluationSettings(problems=len(values)), cast.alice)
    other = evaluation.run
    evaluation.run = run
    evaluation.save()
    other.experiment.delete()
    payload = {
        "step": 0, "split": "test", "contents": [f"{n:016x}" for n in range(len(values))],
        "outcomes": {"pass@1/model": values, "tree/pass@1": values},
    }  # fmt: skip
    ingest(run.pk, fencing, [an_event(1, "eval.outcomes", **payload)])
    record_figures(run.pk)
    evaluation.refresh_from_db()
    return evaluation


def test_an_evaluation_measures_on_the_mixture_of_the_dataset(cast, versions):
    mixture = {"underspecified_share": 0.5, "fewest_readings": 4, "most_readings": 6}
    dataset = version_of(cast.project, ProblemsConfig(seed=3, **mixture))
    evaluation = evaluate(versions[0], dataset, EvaluationSettings(problems=7), cast.alice)
    problems = evaluation.run.config["problems"]
    assert {name: problems[name] for name in mixture} == mixture
    assert (problems["seed"], problems["test"]) == (3, 7)


def test_an_evaluation_is_a_queued_run_that_begins_with_the_version(cast, model, versions):
    evaluation = evaluations_of(versions[1])[0]
    run = Run.objects.get(pk=evaluation.run_id)
    assert run.state == "queued" and run.config["agents"][0]["model"] == "/models/oak"
    assert run.config["problems"]["test"] == 3
    with pytest.raises(RegistryRefused, match="queued: stop it first"):
        delete_evaluation(evaluation)
    with pytest.raises(RegistryRefused, match="evaluation: Evaluation of oak v2"):
        delete_version(versions[1])


def test_a_run_that_measures_is_not_among_the_runs_that_train(client, cast, model):
    trained = a_run(cast)
    client.force_login(cast.bob)
    runs = client.get("/api/v1/runs").json()["runs"]
    assert [one["id"] for one in runs] == [str(trained.pk)]


def test_evaluations_in_the_log_become_figures_of_the_version(cast, model, versions):
    dataset = DatasetVersion.objects.get()
    measured(cast, versions[1], dataset, [1.0, 0.0, 1.0, None])
    version = visible_version(cast.bob, model.pk, 2)
    (one, tree) = metrics_of(version, evaluations_of(version))
    assert (one.source, one.figure, one.problems) == ("measured v1", "pass@1", 3)
    assert one.value == pytest.approx(2 / 3) and one.standard_error == pytest.approx(1 / 3)
    assert tree.figure == "tree/pass@1"
    assert "| measured v1 | pass@1 | 0\\.6667 | 0\\.3333 | 3 |" in card(version)


def test_versions_are_compared_in_pairs_on_the_same_problems(cast, model, versions):
    dataset = DatasetVersion.objects.get()
    measured(cast, versions[0], dataset, [0.0] * 30)
    measured(cast, versions[1], dataset, [1.0] * 30)
    result = comparison.page([visible_version(cast.bob, model.pk, n) for n in (1, 2)])
    (pair,) = result["pairs"]
    assert pair.figures[0].sentence == (
        "B is 100.0 points above A, 95 % interval 100.0 to 100.0, 30 problems"
    )
    assert {"path": "Parent", "values": [None, "oak v1"]} in result["lineage"]
    assert result["missing"] == []


def test_versions_without_common_problems_are_reported(cast, model, versions):
    result = comparison.page(versions)
    assert result["pairs"] == [] and result["missing"] == ["B"]


def test_lineage_is_a_tree_with_every_child_beneath_its_parent(cast, model, versions):
    first, second = versions
    fields = {"model": model, "path": "/m", "sha256": "b" * 64, "parameters": 1}
    third = ModelVersion.objects.create(number=3, parent=first, **fields)
    fourth = ModelVersion.objects.create(number=4, parent=second, **fields)
    assert [(p.version, p.depth) for p in lineage(first)] == [
        (first, 0), (second, 1), (fourth, 2), (third, 1),
    ]  # fmt: skip
    assert [(p.version, p.depth, p.is_self) for p in lineage(fourth)] == [
        (first, 0, False), (second, 1, False), (fourth, 2, True),
    ]  # fmt: skip


def test_the_generated_part_of_a_card_cannot_be_forged_by_names(cast, model, versions):
    DatasetVersion.objects.get().dataset.__class__.objects.update(name="x |\n# Measured **by me**")
    version = visible_version(cast.bob, model.pk, 2)
    version.notes = "<script>alert(1)</script> people's **own**"
    measured(cast, version, DatasetVersion.objects.get(), [1.0])
    text = card(version)
    assert "\n# Measured" not in text
    assert "x \\|\\\\x0a\\# Measured \\*\\*by me\\*\\* v1" in text
    assert text.endswith("people's **own**\n")


def test_the_pages_of_a_version_use_few_queries(
    client, cast, model, versions, django_assert_max_num_queries
):
    measured(cast, versions[0], DatasetVersion.objects.get(), [1.0, 0.0])
    measured(cast, versions[1], DatasetVersion.objects.get(), [1.0, 1.0])
    client.force_login(cast.vera)
    for address in (
        reverse("version", args=[model.pk, 2]),
        reverse("model", args=[model.pk]),
        f"{reverse('compare-versions')}?version={versions[0].pk}&version={versions[1].pk}",
    ):
        with django_assert_max_num_queries(30):
            assert client.get(address).status_code == 200


@pytest.mark.parametrize("query", ["version=x", "version=-1", "&".join(["version=1"] * 9)])
def test_an_address_of_a_comparison_that_is_none_is_refused(client, cast, query):
    client.force_login(cast.bob)
    assert client.get(f"{reverse('compare-versions')}?{query}").status_code == 400


def test_creation_under_one_key_makes_one_model_and_one_evaluation(client, cast, model):
    client.force_login(cast.bob)
    dataset = DatasetVersion.objects.get()

    def ask(path, body):
        headers = {"Idempotency-Key": f"night {path}"}
        return client.post(path, body, content_type="application/json", headers=headers)

    for path, body in (
        ("/api/v1/models", {"project": cast.project.pk, "name": "elm"}),
        (f"/api/v1/models/{model.pk}/versions/2/evaluations", {"dataset_version": dataset.pk}),
    ):
        first, again = ask(path, body), ask(path, body)
        assert first.status_code == again.status_code == 201
        assert first.json()["id"] == again.json()["id"]
    assert ask("/api/v1/models", {"project": cast.project.pk, "name": "yew"}).status_code == 409


def test_lists_of_models_are_filtered_and_return_the_requested_fields(client, cast, model):
    client.force_login(cast.bob)
    ask = lambda **query: client.get("/api/v1/models", query)  # noqa: E731
    assert ask(fields="name,aliases").json()["models"] == [
        {"id": model.pk, "name": "oak", "aliases": {}}
    ]
    assert ask(name="OA").json()["models"] and not ask(name="elm").json()["models"]
    assert not ask(project=2**40).json()["models"]
    assert ask(fields="secrets").status_code == 422
    etag = ask()["ETag"]
    assert client.get("/api/v1/models", headers={"If-None-Match": etag}).status_code == 304
