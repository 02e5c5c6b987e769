"""REST of promotions, evaluations, and the workspace's approval policy."""

from __future__ import annotations

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Status

from webapp.datasets.models import DatasetVersion
from webapp.projects.api import Slug
from webapp.projects.permissions import Action, require
from webapp.projects.selectors import visible_workspace
from webapp.registry import deletion, promotion
from webapp.registry.api.schemas import (
    Decision,
    EvaluationOut,
    Id,
    ModelEvaluationList,
    NewEvaluation,
    NewPromotion,
    Number,
    PromotionList,
    PromotionOut,
    SecondPair,
)
from webapp.registry.evaluations import EvaluationSettings, evaluate
from webapp.registry.models import SecondPairOfEyes
from webapp.registry.selectors import (
    visible_evaluation,
    visible_evaluations,
    visible_model,
    visible_promotion,
    visible_promotions,
    visible_version,
)
from webapp.rest.pagination import Cursor, page
from webapp.rest.problem_details import Invalid

router = Router()
workspaces = Router()


@router.get("/{int:model_id}/promotions", response=PromotionList)
def list_promotions(request: HttpRequest, model_id: Id, query: Query[Cursor]):
    """Lists every move of the model's aliases, requested or done, oldest first."""
    model = visible_model(request.user, model_id)
    return page(visible_promotions(request.user).filter(model=model), "promotions", query)


@router.post("/{int:model_id}/promotions", response={201: PromotionOut})
def create_promotion(request: HttpRequest, model_id: Id, new: NewPromotion):
    """Moves an alias to a version, or removes it. Where the workspace requires a second person's
    approval the move is pending until another person approves it."""
    model = visible_model(request.user, model_id)
    require(request.user, promotion.action_of(model.project), model.project)
    version = model.versions.filter(number=new.version).first()
    if new.version is not None and version is None:
        raise Invalid("version", new.version, f"{model} has no such version", 404)
    created = promotion.promote(model, new.alias, version, new.reason, request.user)
    return Status(201, created)


@router.post("/promotions/{int:promotion_id}/approve", response=PromotionOut)
def approve_promotion(request: HttpRequest, promotion_id: Id, decision: Decision):
    """Approves a move that another person requested; it takes effect immediately."""
    pending = visible_promotion(request.user, promotion_id)
    require(request.user, Action.PROMOTE, pending.model.project)
    return promotion.approve(pending.pk, decision.words, request.user)


@router.post("/promotions/{int:promotion_id}/refuse", response=PromotionOut)
def refuse_promotion(request: HttpRequest, promotion_id: Id, decision: Decision):
    """Refuses a pending move, or withdraws your own."""
    pending = visible_promotion(request.user, promotion_id)
    own = pending.asked_by_id == request.user.pk
    require(
        request.user, Action.REQUEST_PROMOTION if own else Action.PROMOTE, pending.model.project
    )
    return promotion.refuse(pending.pk, decision.words, request.user)


@router.get("/{int:model_id}/versions/{int:number}/evaluations", response=ModelEvaluationList)
def list_model_evaluations(
    request: HttpRequest, model_id: Id, number: Number, query: Query[Cursor]
):
    """Lists the version's evaluations, finished or not, oldest first."""
    version = visible_version(request.user, model_id, number)
    evaluations = visible_evaluations(request.user).filter(version=version)
    return page(evaluations, "evaluations", query)


@router.post("/{int:model_id}/versions/{int:number}/evaluations", response={201: EvaluationOut})
def create_model_evaluation(request: HttpRequest, model_id: Id, number: Number, new: NewEvaluation):
    """Queues a run that evaluates the version on a dataset version of its project."""
    version = visible_version(request.user, model_id, number)
    require(request.user, Action.ADD_MODELS, version.model.project)
    datasets = DatasetVersion.objects.visible_to(request.user)
    dataset = get_object_or_404(datasets, pk=new.dataset_version)
    settings = EvaluationSettings(new.problems, new.samples, new.nodes, new.seed)
    evaluation = evaluate(version, dataset, settings, request.user)
    return Status(201, visible_evaluation(request.user, evaluation.pk))


@router.get("/evaluations/{int:evaluation_id}", response=EvaluationOut)
def get_model_evaluation(request: HttpRequest, evaluation_id: Id):
    """Returns an evaluation's progress and figures."""
    return visible_evaluation(request.user, evaluation_id)


@router.delete("/evaluations/{int:evaluation_id}", response={204: None})
def delete_model_evaluation(request: HttpRequest, evaluation_id: Id):
    """Deletes the evaluation and its run; 409 while it is in progress."""
    evaluation = visible_evaluation(request.user, evaluation_id)
    require(request.user, Action.DELETE_MODELS, evaluation.version.model.project)
    deletion.delete_evaluation(evaluation)
    return Status(204, None)


@workspaces.get("/{slug}/promotion", response=SecondPair)
def get_second_pair(request: HttpRequest, slug: Slug):
    """Returns whether promotions in the workspace require a second person's approval."""
    workspace = visible_workspace(request.user, slug)
    return {"second_pair": SecondPairOfEyes.objects.filter(workspace=workspace).exists()}


@workspaces.patch("/{slug}/promotion", response=SecondPair)
def change_second_pair(request: HttpRequest, slug: Slug, new: SecondPair):
    """Sets whether promotions require a second person's approval from now on."""
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.CHANGE_SECOND_PAIR, workspace)
    promotion.set_second_pair(workspace, new.second_pair, request.user)
    return new
