"""Views of promotions, evaluations, and the workspace's approval policy."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from engine.config.errors import ConfigError
from webapp.projects.permissions import Action, require
from webapp.projects.selectors import visible_workspace
from webapp.registry import deletion, evaluations, promotion
from webapp.registry.errors import RegistryRefused
from webapp.registry.forms import DecisionForm, EvaluationForm, PromotionForm, SecondPairForm
from webapp.registry.models import Model, PromotionState
from webapp.registry.presentation import model_page, version_page
from webapp.registry.selectors import (
    visible_evaluation,
    visible_model,
    visible_promotion,
    visible_version,
)


@require_POST
def promote(request: HttpRequest, model_id: int) -> HttpResponse:
    """Moves an alias, or requests it; redirects to the model."""
    model = visible_model(request.user, model_id)
    require(request.user, promotion.action_of(model.project), model.project)
    form = PromotionForm(request.POST)
    if form.is_valid():
        _promote(request, model, form)
        return redirect("model", model_id)
    page = model_page(request.user, model_id, None, promotion_form=form)
    return render(request, "model.html", page, status=422)


def _promote(request: HttpRequest, model: Model, form: PromotionForm) -> None:
    alias, number, reason = (form.cleaned_data[name] for name in ("alias", "version", "reason"))
    version = model.versions.filter(number=number).first()
    try:
        if number is not None and version is None:
            raise RegistryRefused(f"{model} has no version {number}.")
        created = promotion.promote(model, alias, version, reason, request.user)
    except RegistryRefused as refusal:
        messages.error(request, str(refusal))
        return
    if created.state == PromotionState.WAITING:
        messages.success(request, f"{alias} moves once another person approves it.")
    else:
        messages.success(
            request, f"{alias} points to {version}." if version else f"{alias} is removed."
        )


@require_POST
def decide(request: HttpRequest, promotion_id: int) -> HttpResponse:
    """Approves or refuses a pending promotion; redirects to its model."""
    pending = visible_promotion(request.user, promotion_id)
    form = DecisionForm(request.POST)
    approves = form.is_valid() and form.cleaned_data["do"] == "approve"
    own = pending.asked_by_id == request.user.pk and not approves
    require(
        request.user, Action.REQUEST_PROMOTION if own else Action.PROMOTE, pending.model.project
    )
    try:
        if not form.is_valid():
            raise RegistryRefused("Choose to approve or to refuse it.")
        do = promotion.approve if approves else promotion.refuse
        do(pending.pk, form.cleaned_data["words"], request.user)
    except RegistryRefused as refusal:
        messages.error(request, str(refusal))
    return redirect("model", pending.model_id)


@require_POST
def evaluate(request: HttpRequest, model_id: int, number: int) -> HttpResponse:
    """Queues an evaluation of a version; redirects to it."""
    version = visible_version(request.user, model_id, number)
    require(request.user, Action.ADD_MODELS, version.model.project)
    form = EvaluationForm(version, request.POST)
    if not form.is_valid():
        page = version_page(request.user, version, evaluation_form=form)
        return render(request, "version.html", page, status=422)
    try:
        settings = form.evaluation_settings()
        evaluations.evaluate(version, form.cleaned_data["dataset"], settings, request.user)
    except ConfigError as error:
        messages.error(request, error.problems[0]["reason"])
    return redirect("version", model_id, number)


@require_POST
def delete_evaluation(request: HttpRequest, evaluation_id: int) -> HttpResponse:
    """Deletes an evaluation that is over; redirects to its version."""
    evaluation = visible_evaluation(request.user, evaluation_id)
    require(request.user, Action.DELETE_MODELS, evaluation.version.model.project)
    try:
        deletion.delete_evaluation(evaluation)
    except RegistryRefused as refusal:
        messages.error(request, str(refusal))
    return redirect("version", evaluation.version.model_id, evaluation.version.number)


@require_POST
def second_pair(request: HttpRequest, slug: str) -> HttpResponse:
    """Sets whether promotions require a second person's approval; redirects to the workspace."""
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.CHANGE_SECOND_PAIR, workspace)
    form = SecondPairForm(request.POST)
    required = form.is_valid() and form.cleaned_data["second_pair"]
    promotion.set_second_pair(workspace, required, request.user)
    return redirect("workspace", slug)
