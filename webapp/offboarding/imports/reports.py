"""Reports of an export: their newest text, whose figures read the imported runs.

Invariants: in the text the ids of runs that came with it are the new ones; frozen figures are drawn
from these runs again, so that no data of the file is ever drawn. Of a run that was deleted before
the export a frozen figure is lost, which the report says.
"""

from __future__ import annotations

import re
import uuid

from webapp.offboarding.errors import ImportRefused
from webapp.offboarding.imports import records
from webapp.offboarding.imports.rows import Import, create
from webapp.projects.models import Project
from webapp.reports.models import ReportPage
from webapp.reports.services import MOST_REPORTS, store_version

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


def create_reports(job: Import) -> None:
    member = "reports.jsonl"
    for one in job.archive.rows(member, records.Report):
        project = job.ids.get(member, "project", one.project_id)
        _refuse_too_many(member, project)
        page = create(
            ReportPage,
            {"created": one.created},
            project=project,
            title=one.title,
            text=job.people.signed(member, _with_new_runs(job, one.text), one.created_by_id),
            created_by=job.people.user(member, one.created_by_id),
            edited_by=job.people.user(member, one.edited_by_id),
            edited=one.edited,
        )
        store_version(page, page.edited_by, reader=job.people.importer)
        job.ids.add(member, "report", one.id, page)


def _refuse_too_many(member: str, project: Project) -> None:
    if ReportPage.objects.filter(project=project).count() >= MOST_REPORTS:
        reason = f"gives {project} more than {MOST_REPORTS} reports, the most of a project."
        raise ImportRefused(member, reason)


def _with_new_runs(job: Import, text: str) -> str:
    def new(match: re.Match[str]) -> str:
        run = job.ids.find("run", uuid.UUID(match[0]))
        return str(run.pk) if run else match[0]

    return _UUID.sub(new, text)
