"""Requests of imports of uploaded zips, and their reads.

Invariant: a request that is refused changes nothing.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone

from webapp.accounts.models import User
from webapp.artifacts.models import Upload
from webapp.offboarding.models import ImportRequest
from webapp.projects.models import Workspace
from webapp.projects.permissions import Action, may
from webapp.rest.problem_details import Invalid

MOST_OPEN = 3
"""Imports of one person that are queued or running."""
SHOWN = 20
HELD = timedelta(days=30)
"""How long the file of an import waits for a worker."""


@transaction.atomic
def request_import(
    upload: Upload,
    user: User,
    into: Workspace | None = None,
    name: str = "",
    *,
    is_confirmed: bool = False,
) -> ImportRequest:
    """Queues the check of a finished upload, and its import if it `is_confirmed`, into a workspace
    that `user` owns, or into a new one, which is called `name` or as the exported one. An earlier
    import of the same upload, which has ended, loses it.

    Raises:
        Invalid: the upload is no finished zip of a workspace, or is being imported; `name` is given
            for a workspace that exists; or too many imports are open.
    """
    if into is not None and name:
        raise Invalid("name", name, f"{into} has a name; leave it out, or leave out `into`")
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    row = Upload.objects.select_for_update().filter(pk=upload.pk).first()
    if row is None or row.kind != Upload.Kind.WORKSPACE or row.artifact_id is None:
        reason = "it is no finished upload of the kind workspace: finish it first"
        raise Invalid("upload", str(upload.pk), reason, 409)
    if ImportRequest.objects.filter(upload=row, finished=None).exists():
        raise Invalid("upload", str(upload.pk), "it is being imported: wait, or cancel that", 409)
    if ImportRequest.objects.filter(created_by=user, finished=None).count() >= MOST_OPEN:
        reason = f"{MOST_OPEN} of your imports are pending: wait until one is done, or cancel one"
        raise Invalid("upload", str(upload.pk), reason, 409)
    ImportRequest.objects.filter(upload=row).update(upload=None)
    hold(row, HELD)
    return ImportRequest.objects.create(
        created_by=user, into=into, name=name, file=row.name, upload=row,
        is_confirmed=is_confirmed,
    )  # fmt: skip


def hold(upload: Upload, duration: timedelta) -> None:
    """Keeps the file for so long from now."""
    Upload.objects.filter(pk=upload.pk).update(expires=timezone.now() + duration)


def visible_requests(user: User) -> QuerySet[ImportRequest]:
    """Returns the imports that `user` may see, newest first."""
    rows = ImportRequest.objects.visible_to(user).defer("result__ids", "result__people")
    return rows.select_related("into", "result__workspace", "created_by").order_by("-pk")


def visible_request(user: User, request_id: int) -> ImportRequest:
    """Returns the import. Raises `Http404` if it does not exist for `user`."""
    return get_object_or_404(visible_requests(user), pk=request_id)


def requests_page(
    user: User, state: str | None, cursor: int | None, limit: int
) -> tuple[list[ImportRequest], int | None]:
    """Returns one page of the imports of `user`, newest first, and the cursor of the next one."""
    rows = visible_requests(user)
    if state is not None:
        rows = rows.filter(state=state)
    if cursor is not None:
        rows = rows.filter(pk__lt=cursor)
    shown = list(rows[: limit + 1])
    return shown[:limit], shown[limit - 1].pk if len(shown) > limit else None


def owned_workspaces(user: User) -> list[Workspace]:
    """Returns the workspaces that `user` may import into, by name."""
    seen = Workspace.objects.visible_to(user).order_by("name", "pk")
    return [one for one in seen if may(user, Action.IMPORT, one)]
