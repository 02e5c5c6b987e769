"""Deletion of versions and models that nothing refers to.

Invariant: nothing in use is deleted: runs that started from a version, aliases, child versions,
evaluations and pending promotions protect it, and the refusal names them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from django.db import transaction

from webapp.experiments.scheduling.states import ENDED
from webapp.registry.errors import RegistryRefused
from webapp.registry.model_files.folders import remove_unused
from webapp.registry.models import Evaluation, Model, ModelVersion, PromotionState
from webapp.registry.services import lock

_SHOWN = 3


@transaction.atomic
def delete_version(version: ModelVersion) -> None:
    """Deletes the version, its notes and its files.

    Raises:
        RegistryRefused: something refers to it; the message names what.
    """
    lock(version.model.project)
    if uses := "; ".join(references(version)):
        raise RegistryRefused(f"{version} is in use: {uses}. Remove these first.")
    version.delete()
    transaction.on_commit(partial(remove_unused, [version.path]))


@transaction.atomic
def delete_model(model: Model) -> None:
    """Deletes the model with all of its versions.

    Raises:
        RegistryRefused: something outside of it refers to a version.
    """
    lock(model.project)
    versions = list(model.versions.select_related("model").order_by("number"))
    inside = {version.pk for version in versions}
    for version in versions:
        if uses := "; ".join(references(version, inside)):
            raise RegistryRefused(f"{version} is in use: {uses}. Remove these first.")
    model.delete()
    transaction.on_commit(partial(remove_unused, [version.path for version in versions]))


@transaction.atomic
def delete_evaluation(evaluation: Evaluation) -> None:
    """Deletes the evaluation with its run.

    Raises:
        RegistryRefused: it is in progress.
    """
    experiment, state = evaluation.run.experiment, evaluation.run.run_state
    if state not in ENDED:
        raise RegistryRefused(f"{evaluation} is {state.label.lower()}: stop it first.")
    experiment.delete()


def references(version: ModelVersion, inside: set[int] = frozenset()) -> Iterator[str]:
    """Yields descriptions of what refers to the version; children with ids in `inside` do not
    count."""
    children = version.children.exclude(pk__in=inside).select_related("model").order_by("pk")
    uses = version.uses.filter(run__evaluation=None).select_related("run__experiment")
    pending = version.promotions.filter(state=PromotionState.WAITING)
    evaluations = version.evaluations.select_related("run__experiment").order_by("pk")
    names_by_kind: dict[tuple[str, str], list[str]] = {
        ("alias", "aliases"): [alias.name for alias in version.aliases.all()],
        ("version derived from it", "versions derived from it"): [str(child) for child in children],
        ("run started from it", "runs started from it"): [
            str(use.run) for use in uses.order_by("-run__created")
        ],
        ("evaluation", "evaluations"): [str(one.run) for one in evaluations],
        ("pending promotion", "pending promotions"): [one.alias for one in pending],
    }
    for (one, several), names in names_by_kind.items():
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            yield f"{one if len(names) == 1 else several}: {', '.join(names[:_SHOWN])}{more}"
