"""Template contexts of the pages of a model and of a version."""

from __future__ import annotations

from typing import Any

from webapp.accounts.models import User
from webapp.projects.permissions import Action, may
from webapp.registry.forms import EvaluationForm, NotesForm, PromotionForm
from webapp.registry.models import ModelVersion, PromotionState
from webapp.registry.promotion import USUAL, needs_second_pair
from webapp.registry.references import reference_to
from webapp.registry.selectors import versions_page, visible_promotions
from webapp.registry.versions.cards import card, source_of
from webapp.registry.versions.lineage import lineage
from webapp.registry.versions.metrics import evaluations_of, metrics_of

MOST_MOVES = 50
MOST_USES = 20


def model_page(
    user: User,
    model_id: int,
    before: int | None,
    promotion_form: PromotionForm | None = None,
) -> dict[str, Any]:
    """Returns `model`, `versions` (one page), `before` and `next` (for `?before=`); `aliases`,
    `waiting` and `moves` (Promotion), each pending one with `own`; `can_request`, `can_decide`,
    `can_add`, `can_delete`, `second_pair`, `promotion_form`, `usual` (names of aliases).

    Raises `Http404` if `user` may not see the model.
    """
    shown = versions_page(user, model_id, before)
    project = shown.model.project
    moves = visible_promotions(user).filter(model=shown.model).order_by("-pk")
    second_pair = needs_second_pair(project)
    can_decide = may(user, Action.PROMOTE, project)
    waiting = list(moves.filter(state=PromotionState.WAITING))
    for one in waiting:
        one.own = one.asked_by_id == user.pk
    return {
        "model": shown.model,
        "versions": shown.versions,
        "before": before,
        "next": shown.next,
        "aliases": list(shown.model.aliases.select_related("version")),
        "waiting": waiting,
        "moves": list(moves.exclude(state=PromotionState.WAITING)[:MOST_MOVES]),
        "second_pair": second_pair,
        "can_request": may(user, Action.REQUEST_PROMOTION, project) if second_pair else can_decide,
        "can_decide": can_decide,
        "can_add": may(user, Action.ADD_MODELS, project),
        "can_delete": may(user, Action.DELETE_MODELS, project),
        "promotion_form": promotion_form or PromotionForm(),
        "usual": USUAL,
    }


def version_page(
    user: User,
    version: ModelVersion,
    notes_form: NotesForm | None = None,
    evaluation_form: EvaluationForm | None = None,
) -> dict[str, Any]:
    """Returns `version`, `lineage` (LineageRow), `metrics`, `evaluations`, `card` (markdown),
    `origin` (of a converted version: metadata) and `source` (in words), `uses`, `reference`,
    `size` in bytes, `others` (versions to compare with), `can_add`, `can_delete`, and the forms.
    """
    project = version.model.project
    evaluations = evaluations_of(version)
    uses = version.uses.filter(run__evaluation=None).select_related("run__experiment")
    others = version.model.versions.exclude(pk=version.pk).order_by("-number")
    return {
        "version": version,
        "lineage": lineage(version),
        "metrics": metrics_of(version, evaluations),
        "evaluations": evaluations,
        "card": card(version),
        "origin": version.metadata.get("origin"),
        "source": source_of(version),
        "uses": list(uses.order_by("-run__created")[:MOST_USES]),
        "reference": reference_to(version),
        "size": sum(file.size for file in version.files.all()),
        "others": list(others.select_related("model")[:MOST_USES]),
        "can_add": may(user, Action.ADD_MODELS, project),
        "can_delete": may(user, Action.DELETE_MODELS, project),
        "notes_form": notes_form or NotesForm(initial={"notes": version.notes}),
        "evaluation_form": evaluation_form or EvaluationForm(version),
    }
