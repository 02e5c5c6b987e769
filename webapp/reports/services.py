"""Creation, change and deletion of reports, and what is frozen for them.

Invariants: a change names the version that it began with, and is refused if that is not the newest
(`EditConflict`): no text replaces one that its author did not see. The data of a frozen block are
stored when a version with it is saved first, and kept as long as a kept version shows them. Callers
have checked who may write (`projects.permissions`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import User
from webapp.comments.mail import mail_notices
from webapp.comments.models import Notice, Reason
from webapp.markdown import MOST_CHARACTERS
from webapp.projects.models import Membership, Project
from webapp.projects.selectors import visible_projects
from webapp.reports.content import directives_in
from webapp.reports.directives import BlockError
from webapp.reports.embeds import data_of
from webapp.reports.embeds.readers import Reader
from webapp.reports.errors import EditConflict, ReportRefused
from webapp.reports.models import FrozenFigure, ReportPage, ReportVersion

LONGEST_TITLE = 200
LONGEST = MOST_CHARACTERS
MOST_REPORTS = 1000
"""Reports of one project."""
MOST_VERSIONS = 100
"""Newest versions that are kept of a report."""
MOST_FROZEN = 100
"""Frozen figures of all kept versions: older versions go first."""
MOST_MENTIONS = 20
_MENTION = re.compile(r"(?<![\w@./+-])@([\w.@+-]{1,150})")


@dataclass(frozen=True, slots=True)
class Draft:
    """What a person saves."""

    title: str
    text: str
    site: str
    """Beginning of addresses in mail, such as https://grove.example."""


@transaction.atomic
def create_report(project: Project, author: User, draft: Draft) -> ReportPage:
    """Creates a report of the project.

    Raises:
        ReportRefused: the project has `MOST_REPORTS` already.
    """
    Project.objects.select_for_update().get(pk=project.pk)
    if ReportPage.objects.filter(project=project).count() >= MOST_REPORTS:
        raise ReportRefused(f"{project} has {MOST_REPORTS} reports, the most: delete one")
    now = timezone.now()
    page = ReportPage.objects.create(
        project=project, title=draft.title, text=draft.text,
        created_by=author, edited_by=author, edited=now,
    )  # fmt: skip
    store_version(page, author)
    _notify(page, "", draft)
    return page


@transaction.atomic
def change_report(page: ReportPage, author: User, version: int, draft: Draft) -> ReportPage:
    """Saves a further version, if `version` is the newest; a draft that changes nothing makes none.

    Raises:
        EditConflict: somebody saved another version since.
    """
    rows = ReportPage.objects.select_for_update(of=("self",))
    page = rows.select_related("project__workspace", "created_by", "edited_by").get(pk=page.pk)
    if page.version != version:
        raise EditConflict(page, version, draft.title, draft.text)
    before = page.text
    if (draft.title, draft.text) == (page.title, before):
        _freeze(page, author)  # what could not be frozen before may be there now
        return page
    page.title, page.text, page.version = draft.title, draft.text, version + 1
    page.edited, page.edited_by = timezone.now(), author
    page.save(update_fields=["title", "text", "version", "edited", "edited_by"])
    store_version(page, author)
    _notify(page, before, draft)
    return page


@transaction.atomic
def delete_report(page: ReportPage) -> None:
    """Deletes the report with its history, its frozen figures, its links and its notices."""
    Notice.objects.filter(key=_notice_key(page)).delete()
    page.delete()


def store_version(page: ReportPage, author: User, reader: User | None = None) -> None:
    """Stores the text of the page as its newest version, and what is frozen in it, which is read
    with the rights of `reader`, by default the author's."""
    keys = sorted({one.key for one in directives_in(page.text) if one.frozen})
    ReportVersion.objects.create(
        page=page, number=page.version, title=page.title, text=page.text,
        frozen=keys, made_by=author, made=page.edited,
    )  # fmt: skip
    _freeze(page, reader or author)
    _prune(page)


def _freeze(page: ReportPage, author: User) -> None:
    """Stores the data of frozen blocks that have none, with the rights of `author`. One that cannot
    be read stays without, which the report says."""
    keys = set(FrozenFigure.objects.filter(page=page).values_list("key", flat=True))
    reader, now = Reader(author, page.project), timezone.now()
    for directive in directives_in(page.text):
        if not directive.frozen or directive.key in keys:
            continue
        try:
            data = data_of(directive, reader)
        except BlockError:
            continue
        keys.add(directive.key)
        FrozenFigure.objects.create(page=page, key=directive.key, data=data, frozen_at=now)


def _prune(page: ReportPage) -> None:
    """Deletes the oldest versions beyond the limits, and frozen data that none shows any more."""
    keys: set[str] = set()
    oldest = page.version
    versions = ReportVersion.objects.filter(page=page).order_by("-number")
    for number, frozen in versions.values_list("number", "frozen")[:MOST_VERSIONS]:
        if len(keys | set(frozen)) > MOST_FROZEN:
            break
        keys |= set(frozen)
        oldest = number
    versions.filter(number__lt=oldest).delete()
    FrozenFigure.objects.filter(page=page).exclude(key__in=keys).delete()


def _notify(page: ReportPage, before: str, draft: Draft) -> None:
    """Notifies members whom the text mentions by @name for the first time, and who see it."""
    names = _mentions(draft.text) - _mentions(before)
    author, key = page.edited_by, _notice_key(page)
    members = Membership.objects.filter(workspace=page.project.workspace_id).values("user")
    people = User.objects.filter(username__in=names, pk__in=members).exclude(pk=author.pk)
    notified = Notice.objects.filter(key=key).values("user")
    made = Notice.objects.bulk_create(
        Notice(
            user=user,
            key=key,
            project=page.project,
            title=f"{author} mentioned you in the report {page.title}"[:300],
            path=reverse("report", args=[page.pk]),
            at=page.edited,
            reason=Reason.MENTIONED,
        )
        for user in people.exclude(pk__in=notified)[:MOST_MENTIONS]
        if visible_projects(user).filter(pk=page.project_id).exists()
    )
    if made:
        transaction.on_commit(partial(mail_notices, [one.pk for one in made], draft.site))


def _notice_key(page: ReportPage) -> str:
    return f"report:{page.pk}:mention"


def _mentions(text: str) -> set[str]:
    """Both readings of each @name: a name may contain dots and dashes, and a sentence may end after
    it."""
    found = _MENTION.findall(text)
    return {*found, *(name.rstrip(".+-@") for name in found)}
