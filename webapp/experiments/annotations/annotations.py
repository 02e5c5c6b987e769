"""People's annotations of runs: tags, notes, stars, and whether they are archived.

Invariant: nothing here affects execution; an active run can be archived and continues.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Sequence

from django.db import transaction
from django.db.models.functions import Now

from engine.config.names import name_fault
from webapp.accounts.models import User
from webapp.experiments.models import Run, Star

MOST_TAGS = 20
LONGEST_TAG = 40
LONGEST_NOTES = 50_000
_TAG = re.compile(r"[^\s,\x00-\x1f\x7f]+")


class InvalidAnnotation(ValueError):
    """Raised for an invalid tag or note, with the field, its value, and what is allowed."""

    def __init__(self, path: str, value: object, reason: str):
        super().__init__(f"{path}: {reason}")
        self.path, self.value, self.reason = path, value, reason


def clean_tags(tags: Sequence[str]) -> list[str]:
    """Returns the tags, each once, in order.

    Raises:
        BadMark: one is empty, too long, or contains spaces or commas; or they are too many.
    """
    for tag in tags:
        if not _TAG.fullmatch(tag) or len(tag) > LONGEST_TAG or not _is_text(tag):
            reason = f"give words of 1 to {LONGEST_TAG} characters, without spaces and commas"
            raise InvalidAnnotation("tags", tag, reason)
        if fault := name_fault(tag):
            raise InvalidAnnotation("tags", tag, fault)
    unique = list(dict.fromkeys(tags))
    if len(unique) > MOST_TAGS:
        raise InvalidAnnotation("tags", len(unique), f"give at most {MOST_TAGS}")
    return unique


def clean_notes(notes: str) -> str:
    """Returns the notes unchanged. Raises `InvalidAnnotation` for text that cannot be stored."""
    if len(notes) > LONGEST_NOTES or "\0" in notes or not _is_text(notes):
        reason = f"give text of at most {LONGEST_NOTES} characters, none of them NUL"
        raise InvalidAnnotation("notes", f"{len(notes)} characters", reason)
    return notes


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


@transaction.atomic
def describe(
    run_id: uuid.UUID, *, tags: Sequence[str] | None = None, notes: str | None = None
) -> None:
    """Sets the given fields only. Raises `InvalidAnnotation`; then nothing was changed."""
    changes = {}
    if tags is not None:
        changes["tags"] = clean_tags(tags)
    if notes is not None:
        changes["notes"] = clean_notes(notes)
    if changes:
        Run.objects.filter(pk=run_id).update(**changes)


@transaction.atomic
def star(run_ids: Collection[uuid.UUID], user: User, on: bool) -> None:
    """Stars runs for `user`, or removes their stars. Idempotent."""
    if on:
        stars = [Star(run_id=run_id, user_id=user.pk) for run_id in run_ids]
        Star.objects.bulk_create(stars, ignore_conflicts=True)
    else:
        Star.objects.filter(run__in=run_ids, user=user.pk).delete()


@transaction.atomic
def archive(run_ids: Collection[uuid.UUID], on: bool) -> None:
    """Archives runs, or restores them; repeated archiving keeps the time of the first."""
    runs = Run.objects.filter(pk__in=run_ids, archived_at__isnull=on)
    runs.update(archived_at=Now() if on else None)


@transaction.atomic
def add_tag(run_ids: Collection[uuid.UUID], tag: str) -> None:
    """Adds a tag to the runs. Raises `InvalidAnnotation`; then nothing was changed."""
    for run in Run.objects.select_for_update(no_key=True).filter(pk__in=run_ids):
        run.tags = clean_tags([*run.tags, tag])
        run.save(update_fields=["tags"])
