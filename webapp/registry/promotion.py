"""Promotion of versions: alias moves, immediate or pending a second person's approval.

Invariants: only `_move` changes an alias, under the lock of its model; a pending promotion is
decided once, and its requester may only withdraw it. Callers have checked the permission
(`projects.permissions`): `action_of` returns the one that a request requires.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from django.db import transaction
from django.dispatch import receiver
from django.utils import timezone

from webapp.accounts.models import User
from webapp.projects.models import Project, Workspace
from webapp.projects.permissions import Action, may
from webapp.projects.revocation import access_changed
from webapp.registry.errors import RegistryRefused
from webapp.registry.models import (
    Alias,
    Model,
    ModelVersion,
    Promotion,
    PromotionState,
    SecondPairOfEyes,
)

NAME = r"[a-z][a-z0-9-]{0,39}"
USUAL = ("candidate", "champion")
MOST_REASON_CHARS = 2000


def needs_second_pair(project: Project) -> bool:
    """Returns whether promotions in the project's workspace require a second person's approval."""
    return SecondPairOfEyes.objects.filter(workspace=project.workspace_id).exists()


def set_second_pair(workspace: Workspace, required: bool, user: User) -> None:
    """Sets whether promotions require a second person's approval from now on. Pending promotions
    remain pending."""
    rule = SecondPairOfEyes.objects
    if required:
        rule.get_or_create(workspace=workspace, defaults={"asked_by": user})
    else:
        rule.filter(workspace=workspace).delete()


def action_of(project: Project) -> Action:
    """Returns the permission required to move an alias, or to request it where approval is
    required."""
    return Action.REQUEST_PROMOTION if needs_second_pair(project) else Action.PROMOTE


@transaction.atomic
def promote(
    model: Model, alias: str, version: ModelVersion | None, reason: str, user: User
) -> Promotion:
    """Moves the alias to `version` (None removes it), or stores a pending promotion if approval is
    required.

    Raises:
        RegistryRefused: the name is invalid, the reason is empty, nothing would change, or a move
            of the alias is pending already.
    """
    _lock(model)
    _refuse(model, alias, version, reason)
    promotion = Promotion(
        model=model,
        alias=alias,
        version=version,
        number=version and version.number,
        reason=reason.strip(),
        state=PromotionState.WAITING,
        asked_by=user,
    )
    if needs_second_pair(model.project):
        promotion.save()
        return promotion
    promotion.decided = timezone.now()
    return _move(promotion)


@transaction.atomic
def approve(promotion_id: int, words: str, user: User) -> Promotion:
    """Approves a pending promotion as the second person: the alias moves.

    Raises:
        RegistryRefused: it is decided already, or `user` requested it.
    """
    promotion = _undecided(promotion_id)
    if promotion.asked_by_id == user.pk:
        raise RegistryRefused("Another person must approve your request.")
    promotion.decided_by, promotion.decided, promotion.decision = user, timezone.now(), words
    return _move(promotion)


@transaction.atomic
def refuse(promotion_id: int, words: str, user: User) -> Promotion:
    """Refuses a pending promotion, or withdraws it if `user` requested it; the alias stays.

    Raises:
        RegistryRefused: it is decided already.
    """
    promotion = _undecided(promotion_id)
    own = promotion.asked_by_id == user.pk
    promotion.state = PromotionState.WITHDRAWN if own else PromotionState.REFUSED
    promotion.decided_by, promotion.decided, promotion.decision = user, timezone.now(), words
    promotion.save()
    return promotion


@receiver(access_changed)
def withdraw_pending(workspace: Workspace, user_ids: Collection[int], **_: Any) -> None:
    """Withdraws pending promotions whose requester has lost the permission to request them."""
    waiting = Promotion.objects.filter(
        model__project__workspace=workspace, asked_by__in=user_ids, state=PromotionState.WAITING
    )
    for promotion in waiting.select_related("model__project", "asked_by"):
        if not may(promotion.asked_by, Action.REQUEST_PROMOTION, promotion.model.project):
            with suppress(RegistryRefused):  # decided concurrently
                refuse(promotion.pk, "Its requester may no longer request it.", promotion.asked_by)


def _refuse(model: Model, alias: str, version: ModelVersion | None, reason: str) -> None:
    if not re.fullmatch(NAME, alias):
        raise RegistryRefused(
            f"{alias[:60]!r} cannot be an alias: give small letters, digits and -, as in champion."
        )
    if not reason.strip():
        raise RegistryRefused("A promotion needs a reason: give one.")
    current = Alias.objects.filter(model=model, name=alias).first()
    if (current and current.version_id) == (version and version.pk):
        means = f"points to {version} already" if version else "does not exist"
        raise RegistryRefused(f"{alias} {means}.")
    if Promotion.objects.filter(model=model, alias=alias, state=PromotionState.WAITING).exists():
        raise RegistryRefused(f"A move of {alias} is pending already: decide it first.")


def _move(promotion: Promotion) -> Promotion:
    aliases = Alias.objects.filter(model=promotion.model_id, name=promotion.alias)
    promotion.previous = aliases.values_list("version__number", flat=True).first()
    promotion.state = PromotionState.DONE
    promotion.save()
    if promotion.version is None:
        aliases.delete()
    else:
        Alias.objects.update_or_create(
            model=promotion.model, name=promotion.alias, defaults={"version": promotion.version}
        )
    return promotion


def _undecided(promotion_id: int) -> Promotion:
    model_id = Promotion.objects.values_list("model", flat=True).get(pk=promotion_id)
    _lock(Model(pk=model_id))
    promotions = Promotion.objects.select_related("model__project", "version", "asked_by")
    promotion = promotions.get(pk=promotion_id)
    if promotion.state != PromotionState.WAITING:
        raise RegistryRefused(f"This is decided already: {promotion.get_state_display()}.")
    return promotion


def _lock(model: Model) -> None:
    Model.objects.select_for_update(no_key=True).get(pk=model.pk)
