"""List of runs: its query, the same for pages and REST, and its keyset pages.

Invariant: pages follow a total order (the sort key, then the id), so concurrent additions and
removals neither repeat nor hide a run.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.db.models import Exists, F, FloatField, OuterRef, Q, QuerySet, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Lower

from engine.events.vocabulary import RunState
from webapp.accounts.models import User
from webapp.experiments.models import Run, Star
from webapp.experiments.selectors import TOO_BIG_FOR_A_LIST, visible_runs
from webapp.rest.pagination import MOMENT_PATTERN, UUID_PATTERN, moment_in

MOST_METRICS = 8
LONGEST = 200


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a table of runs; `sort` is its key in `SORTS` if it is sortable."""

    key: str
    label: str
    sort: str | None = None
    number: bool = False


COLUMNS = (
    Column("state", "State", "state"),
    Column("progress", "Progress", "step"),
    Column("pass1", "Pass@1, before → after"),
    Column("solved", "Solved", "solved", True),
    Column("reward", "Reward", "reward", True),
    Column("tags", "Tags"),
    Column("seed", "Seed", "seed", True),
    Column("recipe", "Recipe"),
    Column("by", "Started by", "by"),
    Column("created", "Created", "created", True),
)
DEFAULT_COLUMNS = ("state", "progress", "pass1", "solved", "tags", "by", "created")

_NOTHING = Value(-1e300)


def _of_result(name: str) -> Any:
    return Coalesce(Cast(KT(f"result__{name}"), FloatField()), _NOTHING)


SORTS: dict[str, Any] = {
    "created": F("created"),
    "name": Lower("experiment__name"),
    "state": F("state"),
    "step": F("step"),
    "seed": F("seed"),
    "by": F("created_by__username"),
    "solved": _of_result("solved"),
    "reward": _of_result("reward"),
}
ORDERS = tuple(sign + name for name in SORTS for sign in ("", "-"))
"""Values of `RunQuery.sort`."""
CURSOR = rf'^({MOMENT_PATTERN}|"[^\x00-\x1f]*"|-?[0-9][-+.0-9e]*)_{UUID_PATTERN}$'
"""Pattern of a cursor."""
_TEXTS = {"name", "state", "by"}


class InvalidQuery(ValueError):
    """Raised for an invalid query: the parameter, its value, and what is allowed. `status` is the
    HTTP status: 422, or 409 for a cursor of another list."""

    def __init__(self, path: str, value: Any, reason: str, status: int = 422):
        super().__init__(f"{path}: {reason}")
        self.path, self.value, self.reason, self.status = path, value, reason, status


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Query of the list; the address holds all of it."""

    state: str = ""
    q: str = ""
    """Text in the name of the experiment, a tag, the project or who started it."""
    tag: str = ""
    project: int | None = None
    name: str = ""
    """Part of the experiment's name."""
    created_by: str = ""
    starred: bool = False
    archived: bool = False
    """Only archived runs; else all others."""
    sort: str = "-created"
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    metrics: tuple[str, ...] = ()
    """Names of metrics whose newest value is shown."""

    def __post_init__(self) -> None:
        """Raises `InvalidQuery` for an unknown value."""
        if self.state and self.state not in set(RunState):
            raise InvalidQuery("state", self.state, f"give one of {', '.join(RunState)}, or none")
        if self.sort.removeprefix("-") not in SORTS:
            allowed = ", ".join(SORTS)
            raise InvalidQuery(
                "sort", self.sort, f"give one of {allowed}, with - for the greatest first"
            )
        keys = {column.key for column in COLUMNS}
        if unknown := [key for key in self.columns if key not in keys]:
            raise InvalidQuery("col", unknown[0], f"give some of {', '.join(sorted(keys))}")
        for path, text in (("q", self.q), ("tag", self.tag)):
            if "\0" in text or len(text) > LONGEST:
                raise InvalidQuery(
                    path, text, f"give at most {LONGEST} characters, none of them NUL"
                )

    @property
    def is_filtered(self) -> bool:
        return bool(self.state or self.q or self.tag or self.project or self.starred)

    @property
    def sort_key(self) -> str:
        return self.sort.removeprefix("-")

    @property
    def sort_field(self) -> str:
        """Sort column; the default order uses the index over the columns themselves."""
        return "created" if self.sort_key == "created" else "sort_key"

    @property
    def is_down(self) -> bool:
        return self.sort.startswith("-")

    def address(self, **changes: Any) -> str:
        """Returns the address's query string of this query, with changes; "" for the plain list."""
        query = replace(self, **changes)
        plain = RunQuery()
        parameters: list[tuple[str, Any]] = [
            (name, getattr(query, name))
            for name in ("state", "q", "tag", "project", "sort")
            if getattr(query, name) != getattr(plain, name)
        ]
        parameters += [(name, 1) for name in ("starred", "archived") if getattr(query, name)]
        if query.columns != DEFAULT_COLUMNS:
            parameters += [("col", key) for key in query.columns] or [("col", "")]
        parameters += [("metric", name) for name in query.metrics]
        return f"?{urlencode(parameters)}" if parameters else ""


@dataclass(frozen=True, slots=True)
class RunsPage:
    """Page of runs in the requested order, and the cursor of the next page if there is one."""

    runs: list[Run]
    next: str | None


def matching_runs(user: User, query: RunQuery) -> QuerySet[Run]:
    """Returns all runs that match the query and that `user` may see, in the requested order."""
    return _ordered(_matching(visible_runs(user).that_train(), user, query), query)


def _ordered(runs: QuerySet[Run], query: RunQuery) -> QuerySet[Run]:
    names = (query.sort_field, "id")
    return runs.annotate(sort_key=SORTS[query.sort_key]).order_by(
        *(f"-{name}" if query.is_down else name for name in names)
    )


def runs_page(user: User, query: RunQuery, cursor: str | None, limit: int = 50) -> RunsPage:
    """Returns one keyset page of the runs that `user` may see. Each has `starred`.

    Raises `InvalidQuery` for a cursor that no page returned.
    """
    key, field, down = query.sort_key, query.sort_field, query.is_down
    runs = matching_runs(user, query)
    if cursor:
        value, run_id = _parse_cursor(cursor, key)
        beyond = "lt" if down else "gt"
        after = Q(**{field: value, f"pk__{beyond}": run_id}) | Q(**{f"{field}__{beyond}": value})
        runs = runs.filter(after, **{f"{field}__{beyond}e": value})
    # Ids first, then their columns: with all shown columns joined, the planner sorts every run.
    page_ids = runs.select_related(None).values("pk")[: limit + 1]
    rows = list(_ordered(_shown(user, page_ids), query))
    if len(rows) <= limit:
        return RunsPage(rows, None)
    return RunsPage(rows[:limit], _cursor(rows[limit - 1], query))


def _shown(user: User, ids: QuerySet[Run]) -> QuerySet[Run]:
    """Returns these runs, whose visibility to `user` was checked, with the columns of a list."""
    stars = Star.objects.filter(run=OuterRef("pk"), user=user.pk)
    runs = Run.objects.filter(pk__in=ids).select_related("experiment__project", "created_by")
    return runs.defer(*TOO_BIG_FOR_A_LIST).annotate(starred=Exists(stars))


def _matching(runs: QuerySet[Run], user: User, query: RunQuery) -> QuerySet[Run]:
    runs = runs.filter(archived_at__isnull=not query.archived)
    if query.state:
        runs = runs.filter(state=query.state)
    if query.tag:
        runs = runs.filter(tags__contains=[query.tag])
    if query.project is not None:
        runs = runs.filter(experiment__project=query.project)
    if query.name:
        runs = runs.filter(experiment__name__icontains=query.name)
    if query.created_by:
        runs = runs.filter(created_by__username=query.created_by)
    if query.starred:
        runs = runs.filter(pk__in=Star.objects.filter(user=user.pk).values("run"))
    for word in query.q.split():
        runs = runs.filter(
            Q(experiment__name__icontains=word)
            | Q(tags__contains=[word])
            | Q(experiment__project__name__icontains=word)
            | Q(created_by__username__icontains=word)
        )
    return runs


def _cursor(run: Run, query: RunQuery) -> str:
    value = getattr(run, query.sort_field)
    text = value.isoformat() if query.sort_key == "created" else json.dumps(value)
    return f"{text}_{run.pk}"


def _parse_cursor(cursor: str, key: str) -> tuple[Any, uuid.UUID]:
    value, _, run_id = cursor.rpartition("_")
    try:
        return (moment_in(value) if key == "created" else _value(value, key)), uuid.UUID(run_id)
    except (ValueError, OverflowError, RecursionError):
        reason = "give the `next` of an earlier page of the same list, or none"
        raise InvalidQuery("cursor", cursor, reason, 409) from None


def _value(text: str, key: str) -> Any:
    value = json.loads(text)
    kinds = (str,) if key in _TEXTS else (int, float)
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise ValueError(f"{text} is no {key}")
    if isinstance(value, str):
        if "\0" in value or len(value) > LONGEST:
            raise ValueError("too long")
        value.encode()
    elif not abs(value) <= (2**31 - 1 if key in ("step", "seed") else 1e300):
        raise ValueError(f"{text} is too large")
    return value


def minutes_of(runs: Sequence[Run]) -> dict[uuid.UUID, float | None]:
    """Returns by run the minutes of training that end it; None where only steps do."""
    rows = Run.objects.filter(pk__in=[run.pk for run in runs])
    return dict(rows.values_list("pk", "config__training__minutes"))


def recipes_of(runs: Sequence[Run]) -> dict[uuid.UUID, str]:
    """Returns the recipe of each of these runs."""
    rows = Run.objects.filter(pk__in=[run.pk for run in runs])
    return dict(rows.values_list("pk", KT("config__recipe")))
