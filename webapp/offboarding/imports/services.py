"""Import of a workspace's export into a workspace: everything in it, or nothing.

Invariants: all rows are created in one transaction, once everything was read, compared with its
SHA-256 and checked. An export is recognised by the digest of its manifest, and imported into a
workspace once. Nobody gets access by an import: members, links, tokens and policies are not
imported; neither are audit records, which are facts about the installation that made them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pghistory
from django.db import DataError, IntegrityError, transaction

from webapp.accounts.models import User
from webapp.offboarding.errors import ImportRefused
from webapp.offboarding.imports import records, registry, reports, rows, runs
from webapp.offboarding.imports.archive import AGAIN, Archive, opened
from webapp.offboarding.imports.contents import Contents, store_contents
from webapp.offboarding.imports.mapping import Ids, People
from webapp.offboarding.imports.rows import Import
from webapp.offboarding.models import WorkspaceImport
from webapp.projects.models import Role, Workspace
from webapp.projects.services import add_workspace
from webapp.registry.models import ModelVersion
from webapp.registry.versions.cards import card

Report = Callable[[str], Any]
Finish = Callable[[WorkspaceImport], Any]

_STEPS: tuple[tuple[str, Callable[[Import], None]], ...] = (
    ("projects", rows.create_projects),
    ("experiments", rows.create_experiments),
    ("datasets", rows.create_datasets),
    ("runs", runs.create_runs),
    ("models", registry.create_models),
    ("aliases and promotions", registry.create_decisions),
    ("evaluations", registry.create_evaluations),
    ("searches", runs.create_searches),
    ("comments", runs.create_comments),
    ("reports", reports.create_reports),
)
PHASES = 2 + len(_STEPS)


def import_workspace(
    path: Path,
    importer: User,
    into: Workspace | None = None,
    name: str = "",
    *,
    known_people: bool = False,
    report: Report = lambda text: None,
    finish: Finish = lambda made: None,
) -> WorkspaceImport:
    """Imports an export into a workspace of `importer`, or into a new one, which is called `name`
    or as the exported one.

    `known_people`: whether people are the accounts of the same name, as the server's operator may
    decide; else all is in the importer's name, and texts name their authors. `report` gets each of
    `PHASES` phases as it begins; `finish` ends the transaction that creates everything, or undoes
    it by raising.

    Raises:
        ImportRefused: the file cannot be imported, or was before; names the member and the remedy.
        AllowanceSpent: a limit of the server is reached.
        OSError: the file cannot be read, or something cannot be written here.
    """
    with opened(path) as archive, ExitStack() as stack:
        refuse_repeated(archive, importer, into)
        report("comparing with the digests of the manifest")
        archive.verify()
        report("checking datasets and models")
        contents = store_contents(archive, stack)
        try:
            with pghistory.context(user=importer.pk), transaction.atomic():
                people = People(archive, importer, known=known_people)
                made = _create(archive, contents, people, into, name, report)
                finish(made)
                return made
        except (IntegrityError, DataError, RecursionError) as error:
            cause = str(error).partition("\n")[0]
            reason = f"rows contradict each other, or the database cannot hold one: {cause}"
            raise ImportRefused("the file", reason) from None


def _create(
    archive: Archive,
    contents: Contents,
    people: People,
    into: Workspace | None,
    name: str,
    report: Report,
) -> WorkspaceImport:
    about = about_of(archive)
    workspace = into or add_workspace(name or about.name, people.importer)
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
    refuse_repeated(archive, people.importer, into)
    job = Import(archive, workspace, people, contents, Ids())
    for what, step in _STEPS:
        report(f"creating {what}")
        step(job)
    _refuse_unreadable(job)
    return WorkspaceImport.objects.create(
        workspace=workspace,
        digest=archive.digest,
        source=about.name,
        made_by=people.importer,
        ids=job.ids.numbers(),
        people=people.mapping(),
    )


def about_of(archive: Archive) -> records.About:
    """Returns the exported workspace. Raises `ImportRefused`."""
    found = list(archive.rows("workspace.json", records.About))
    if len(found) != 1:
        raise ImportRefused("workspace.json", f"has {len(found)} rows. {AGAIN}")
    return found[0]


def refuse_repeated(archive: Archive, importer: User, into: Workspace | None) -> None:
    """Raises `ImportRefused` if the export is in the workspace already; for a new workspace, in any
    that the importer owns."""
    same = WorkspaceImport.objects.filter(digest=archive.digest).select_related("workspace")
    owned = {"workspace__memberships__user": importer, "workspace__memberships__role": Role.OWNER}
    before = (same.filter(workspace=into) if into else same.filter(**owned)).first()
    if before is not None:
        raise ImportRefused(
            "the file",
            f"was imported on {before.made:%-d %B %Y} into {before.workspace} "
            f"({before.workspace.slug}), where all of it is. To import it again, name another "
            "workspace of yours, or delete what is there first.",
            409,
        )


def _refuse_unreadable(job: Import) -> None:
    """Raises `ImportRefused` if a page could not show what was imported."""
    versions = ModelVersion.objects.filter(model__project__workspace=job.workspace)
    for version in versions.select_related("model__project", "run__experiment", "parent__model"):
        _try("models.jsonl", str(version), card, version)


def _try(member: str, name: str, show: Callable[[Any], Any], row: Any) -> None:
    try:
        show(row)
    except Exception as error:  # whatever odd JSON causes
        cause = f"{type(error).__name__} {error}"
        raise ImportRefused(member, f"{name} cannot be shown: {cause}") from None
