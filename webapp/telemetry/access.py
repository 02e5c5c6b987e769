"""Whether the person behind a socket may still see what it follows."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from channels.db import database_sync_to_async

from webapp.accounts.models import User
from webapp.experiments.models import Run


@database_sync_to_async
def visible_among(user_id: int, run_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Those of the runs that the user may see now; none if the account was closed."""
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None:
        return set()
    visible = Run.objects.visible_to(user).filter(pk__in=run_ids)
    return set(visible.values_list("pk", flat=True))


@database_sync_to_async
def is_signed_in(session) -> bool:
    """Whether the session that opened the socket still exists."""
    return session.exists(session.session_key)
