"""Queues of work that few may do at once, with turns between workspaces and people.

Invariants: a workspace holds one slot of a queue at most, and so does a person, in whatever
workspaces; a free slot goes to the one that had no turn for longest, as a workspace and as a
person, so neither many requests, nor many workspaces, nor many members bring more turns. Slots are
advisory locks: they end with their transaction, so with the process that holds them.

Nobody is held up: a request whose turn it is not is answered at once with its place (`Queued`), and
repeated by its client. A place is kept for `KEPT` after its last request; it holds others back
only while it is requested every `PRESENT`, so that a client that is gone leaves no slot idle. It is
a row, so it outlives the web process.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Max, Model, OuterRef, Q, Subquery
from django.db.models.functions import Greatest, Now

from webapp.accounts.models import User
from webapp.errors import Queued
from webapp.limited_process import Queue
from webapp.projects.models import QueuePlace, Workspace

KEPT = timedelta(minutes=2)
PRESENT = timedelta(seconds=10)
_LARGEST = 0x7FFFFFFF
"""Of the second key of an advisory lock."""


@dataclass(frozen=True, slots=True)
class _Held:
    """What other transactions hold of a queue: numbers of slots, and keys of locks."""

    slots: int
    workspaces: frozenset[int]
    users: frozenset[int]


@contextmanager
def in_turn(
    queue: Queue, workspace: Workspace, user: User | None, work: Sequence[object]
) -> Iterator[None]:
    """Holds a slot of the queue until the block ends; `work` identifies what is waited for.

    Raises:
        Queued: it is not this work's turn, or the same work is being done already.
    """
    digest = hashlib.sha256("\n".join(map(str, work)).encode()).hexdigest()
    # An exception must not leave the transaction: it would take the place with it.
    with transaction.atomic():
        failure: Exception | None = _waiting(queue, workspace, user, digest)
        if failure is None:
            try:
                yield
            except Exception as error:
                failure = error
    if failure is not None:
        raise failure


def last_turn(rows: type[Model], workspace: str) -> Greatest:
    """Returns, for a query of rows that workers do, the start of the last one of the same
    workspace, or of the same person in any: a person with many rows waits for all who had no turn
    since. `workspace`: path to the workspace of a row."""

    def newest(path: str) -> Subquery:
        begun = rows._base_manager.filter(**{path: OuterRef(path)}, started__isnull=False)
        return Subquery(begun.order_by("-started").values("started")[:1])

    return Greatest(newest(workspace), newest("created_by"))


def last_turns(queue: str) -> dict[int, datetime]:
    """Returns the last turn of each person in a queue that keeps its own places."""
    return dict(QueuePlace.objects.filter(queue=queue).values_list("user", "served_at"))


def note_turn(queue: str, user_id: int) -> None:
    """Records that a person has a turn now, in a queue that keeps its own places."""
    now = {"renewed_at": Now(), "served_at": Now()}
    QueuePlace.objects.update_or_create(queue=queue, user_id=user_id, work="", defaults=now)


def forget_turns(older: timedelta) -> None:
    """Deletes places that were requested for the last time so long ago."""
    QueuePlace.objects.filter(renewed_at__lt=Now() - older).delete()


def _waiting(queue: Queue, workspace: Workspace, user: User | None, work: str) -> Queued | None:
    """Returns None once this transaction holds a slot; else the place of the work."""
    if not _try_lock(queue.lock + 3, int(work[:7], 16)):
        # The same request is being served, in a transaction that this one would wait for.
        return Queued(1, 1, _now() + KEPT)
    mine = _ask(queue, workspace, user, work)
    held = _held(queue)
    order = _in_order(queue, held)
    place = next(index for index, one in enumerate(order) if one.pk == mine.pk)
    if _is_next(order[: place + 1], queue, held) and _take(queue, mine):
        QueuePlace.objects.filter(pk=mine.pk).update(is_waiting=False, served_at=Now())
        return None
    return Queued(place + 1, len(order), mine.renewed_at + KEPT)


def _ask(queue: Queue, workspace: Workspace, user: User | None, work: str) -> QueuePlace:
    """Returns the place of the work, a new one at the end if it has none."""
    names = {"queue": queue.name, "user": user, "work": work}
    kept = QueuePlace.objects.filter(**names, is_waiting=True, renewed_at__gt=Now() - KEPT)
    now = _now()
    fields = {"workspace": workspace, "is_waiting": True, "renewed_at": now}
    if not kept.exists():
        fields["since"] = now
    place, _ = QueuePlace.objects.update_or_create(**names, defaults=fields)
    return place


def _in_order(queue: Queue, held: _Held) -> list[QueuePlace]:
    """Returns the places that are kept, in the order of their turns: first one of each person and
    workspace, those that were served longest ago before others, then a second one of each."""
    rows = QueuePlace.objects.filter(queue=queue.name, is_waiting=True, renewed_at__gt=Now() - KEPT)
    places = list(rows.order_by("since", "pk"))
    users, workspaces = _last_turns(queue, places, held)
    rounds: dict[int, int] = {}
    of_user: Counter[int | None] = Counter()
    of_workspace: Counter[int | None] = Counter()
    for one in places:
        rounds[one.pk] = of_user[one.user_id]
        of_user[one.user_id] += 1
    # Within a workspace people take turns.
    for one in sorted(places, key=lambda one: (rounds[one.pk], users[one.user_id])):
        rounds[one.pk] = max(rounds[one.pk], of_workspace[one.workspace_id])
        of_workspace[one.workspace_id] += 1

    def turn(one: QueuePlace) -> tuple[int, float, float]:
        last = users[one.user_id], workspaces[one.workspace_id]
        return rounds[one.pk], max(last), min(last)

    return sorted(places, key=turn)


_Times = defaultdict[int | None, float]


def _last_turns(queue: Queue, places: Sequence[QueuePlace], held: _Held) -> tuple[_Times, _Times]:
    """Returns the last turn of each person and of each workspace; those that hold a slot have it
    now."""
    users, workspaces = _Times(float), _Times(float)
    of_these = Q(user__in={one.user_id for one in places})
    of_these |= Q(workspace__in={one.workspace_id for one in places})
    served = QueuePlace.objects.filter(of_these, queue=queue.name, served_at__isnull=False)
    for user, workspace, at in served.values_list("user", "workspace").annotate(Max("served_at")):
        users[user] = max(users[user], at.timestamp())
        workspaces[workspace] = max(workspaces[workspace], at.timestamp())
    for one in places:
        if _key(one.user_id) in held.users:
            users[one.user_id] = math.inf
        if _key(one.workspace_id) in held.workspaces:
            workspaces[one.workspace_id] = math.inf
    return users, workspaces


def _is_next(order: Sequence[QueuePlace], queue: Queue, held: _Held) -> bool:
    """Whether the last place of `order` may take a slot, after those before it that are present and
    may take one themselves."""
    free = queue.slots - held.slots
    workspaces, users = set(held.workspaces), set(held.users)
    mine = order[-1]
    for one in order:
        workspace, user = _key(one.workspace_id), _key(one.user_id)
        is_present = one is mine or one.renewed_at > mine.renewed_at - PRESENT
        if not is_present or workspace in workspaces or user in users:
            continue
        if one is mine:
            return free > 0
        free -= 1
        workspaces.add(workspace)
        users.add(user)
    return False


def _held(queue: Queue) -> _Held:
    """Returns what other transactions hold."""
    keys: dict[int, set[int]] = {queue.lock: set(), queue.lock + 1: set(), queue.lock + 2: set()}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT classid::bigint, objid::bigint FROM pg_locks WHERE locktype = 'advisory'"
            " AND granted AND objsubid = 2 AND classid::bigint = ANY(%s)"
            " AND pid <> pg_backend_pid() AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())",
            [list(keys)],
        )
        for kind, key in cursor.fetchall():
            keys[kind].add(key)
    slots, workspaces, users = keys.values()
    return _Held(len(slots), frozenset(workspaces), frozenset(users))


def _take(queue: Queue, place: QueuePlace) -> bool:
    """Whether this transaction now holds a slot; others may have been faster."""
    return (
        _try_lock(queue.lock + 1, _key(place.workspace_id))
        and _try_lock(queue.lock + 2, _key(place.user_id))
        and any(_try_lock(queue.lock, slot) for slot in range(queue.slots))
    )


def _key(pk: int | None) -> int:
    return (pk or 0) & _LARGEST


def _try_lock(kind: int, key: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [kind, key])
        return cursor.fetchone()[0]


def _now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        return cursor.fetchone()[0]
