"""Queries of searches. Queries for a person start with `visible_to`.

Invariant: lists never load a problem's tests.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from django.db.models import QuerySet
from django.db.models.fields.json import KT
from django.shortcuts import get_object_or_404

from webapp.accounts.models import User
from webapp.searches.models import Search

PAGE = 50


@dataclass(frozen=True, slots=True)
class SearchesPage:
    """A page of searches, newest first, and the cursor of the next page, if any."""

    searches: list[Search]
    next: int | None


def visible_searches(user: User) -> QuerySet[Search]:
    """Returns the searches that `user` may see, newest first, with `problem_id`, without tests."""
    return (
        Search.objects.visible_to(user)
        .select_related(
            "run__experiment__project__workspace",
            "run__created_by",
            "run__dataset_version__dataset",
        )
        .defer("problem", "run__notes", "run__experiment__config")
        .annotate(problem_id=KT("problem__id"))
        .order_by("-pk")
    )


def searches_page(
    user: User, before: int | None = None, project: int | None = None, limit: int = PAGE
) -> SearchesPage:
    """Returns one page of all that `user` may see, or of those in a project."""
    searches = visible_searches(user)
    if before is not None:
        searches = searches.filter(pk__lt=before)
    if project is not None:
        searches = searches.filter(run__experiment__project=project)
    rows = list(searches[: limit + 1])
    more = len(rows) > limit
    return SearchesPage(rows[:limit], rows[limit - 1].pk if more else None)


def visible_search(user: User, run_id: uuid.UUID) -> Search:
    """Returns the search of this run. Raises `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_searches(user), run=run_id)
