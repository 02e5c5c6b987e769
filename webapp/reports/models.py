"""Report pages of a project: Markdown with embedded figures of runs, its history, and its links.

Invariants: text is stored as it was written, and made safe where it is shown; `ReportPage.version`
grows by one with every change, and the newest `ReportVersion` has its title and text; the data of
a frozen figure is stored once and never changed, and refers to no run (`reports.services`).
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from webapp.names import NameColumn
from webapp.projects.models import InProjectQuerySet, Project
from webapp.sharing.models import Link, LinkQuerySet


class ReportPage(models.Model):
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="report_pages")
    title = NameColumn(max_length=200)
    text = models.TextField(blank=True)
    """Markdown with blocks (`reports.directives`)."""
    version = models.PositiveIntegerField(default=1)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)
    edited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    """Who made the newest version."""
    edited = models.DateTimeField()

    objects = InProjectQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["project", "-edited"], name="report_page_newest")]

    def __str__(self) -> str:
        return self.title


class OfPageQuerySet(InProjectQuerySet):
    project_path = "page__project"


class ReportVersion(models.Model):
    """What a report said before it was changed again."""

    page = models.ForeignKey(ReportPage, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    title = NameColumn(max_length=200)
    text = models.TextField(blank=True)
    frozen = ArrayField(models.CharField(max_length=64), default=list)
    """Keys of the frozen figures that it shows."""
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    made = models.DateTimeField()

    objects = OfPageQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["page", "number"], name="report_version_number")
        ]

    def __str__(self) -> str:
        return f"version {self.number}"


class FrozenFigure(models.Model):
    """Data of a frozen block as it was when the report was saved with it first."""

    page = models.ForeignKey(ReportPage, on_delete=models.CASCADE, related_name="frozen_figures")
    key = models.CharField(max_length=64)
    """Of the block: kind, runs, values and the text after `frozen:`."""
    data = models.JSONField()
    frozen_at = models.DateTimeField()

    objects = OfPageQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["page", "key"], name="frozen_once")]

    def __str__(self) -> str:
        return self.key


class ReportShareQuerySet(LinkQuerySet, InProjectQuerySet):
    pass


class ReportShare(Link):
    """A link by which anybody may read a report, and nothing else."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    """Of the report: the audit still knows it when the report is deleted."""
    page = models.ForeignKey(ReportPage, on_delete=models.CASCADE, related_name="shares")
    frozen = models.JSONField(null=True)
    """What it showed at its creation (`reports.sharing.snapshot`), which is all that it ever shows.
    Null is live."""

    objects = ReportShareQuerySet.as_manager()

    def __str__(self) -> str:
        return "the report, live" if self.frozen is None else "the report, frozen"
