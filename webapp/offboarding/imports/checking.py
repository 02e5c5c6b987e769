"""Check of an export before anything of it is imported: what comes in, what is left out, and why.

Invariants: every byte is compared with its SHA-256, and every row of a table that is imported and
every line of a log is read as the import reads it; nothing is stored, and nothing is locked beyond
the check itself. Problems of datasets and weights of models are parsed by the import alone, before
it creates anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from django.db import transaction

from engine.config.errors import printable
from webapp.accounts.models import User
from webapp.experiments.scheduling.queue import events_of
from webapp.experiments.scheduling.states import ENDED
from webapp.offboarding.errors import ImportRefused
from webapp.offboarding.export import MANIFEST
from webapp.offboarding.imports import records, runs
from webapp.offboarding.imports.archive import Archive, opened
from webapp.offboarding.imports.contents import refuse_quota
from webapp.offboarding.imports.mapping import Ids, People
from webapp.offboarding.imports.rows import names_a_file
from webapp.offboarding.imports.services import Report, about_of, refuse_repeated
from webapp.projects.allowances import refuse_events, refuse_projects, refuse_workspace
from webapp.projects.models import Workspace
from webapp.registry.models import PromotionState

PHASES = 3
_NAMED = 3
"""Names of files that a line of the summary lists; further ones are counted."""


class Included(msgspec.Struct):
    """Objects of a kind that are imported."""

    what: str
    count: int
    note: str = ""
    """In which way they differ from the exported ones."""


class LeftOut(msgspec.Struct):
    """Objects of a kind that are not imported."""

    what: str
    count: int | None
    """None where an export never has any."""
    reason: str


class Summary(msgspec.Struct):
    """What a check has found."""

    source: str
    """Name of the exported workspace."""
    grove: str
    """Version of Grove that made the export; empty if it does not say."""
    size: int
    """Unpacked bytes."""
    included: list[Included]
    left_out: list[LeftOut]


@dataclass(frozen=True, slots=True)
class _Table:
    """A table whose rows refer to rows of tables before it."""

    member: str
    kind: type[Any]
    name: str = ""
    """Kind of object that its rows are, by which others refer to them."""
    refers: dict[str, str] = field(default_factory=dict)
    """Kind of object by column."""
    people: tuple[str, ...] = ()
    """Columns that name a person."""


_RUN, _VERSION, _DATASET = "run", "model version", "dataset version"
_TABLES = (
    _Table("projects.jsonl", records.Project, "project", people=("created_by_id",)),
    _Table(
        "experiments.jsonl", records.Experiment, "experiment", {"project_id": "project"},
        ("created_by_id",),
    ),
    _Table(
        "datasets.jsonl", records.DatasetVersion, _DATASET, {"dataset__project": "project"},
        ("created_by_id",),
    ),
    _Table(
        "runs.jsonl", records.Run, _RUN,
        {"experiment_id": "experiment", "dataset_version_id": _DATASET}, ("created_by_id",),
    ),
    _Table("tracking.jsonl", records.Tracking),
    _Table(
        "models.jsonl", records.ModelVersion, _VERSION,
        {"model__project": "project", "run_id": _RUN, "dataset_version_id": _DATASET},
        ("created_by_id",),
    ),
    _Table("files.jsonl", records.File),
    _Table("uses.jsonl", records.Use, "", {"run_id": _RUN, "version_id": _VERSION}),
    _Table("aliases.jsonl", records.Alias, "", {"version_id": _VERSION}),
    _Table(
        "promotions.jsonl", records.Promotion, "", {"version_id": _VERSION},
        ("asked_by_id", "decided_by_id"),
    ),
    _Table(
        "evaluations.jsonl", records.Evaluation, "",
        {"version_id": _VERSION, "dataset_version_id": _DATASET, "run_id": _RUN},
    ),
    _Table("searches.jsonl", records.Search, "", {"run_id": _RUN}),
    _Table("comments.jsonl", records.Comment, "", {"run_id": _RUN}, ("author_id",)),
    _Table(
        "reports.jsonl", records.Report, "report", {"project_id": "project"},
        ("created_by_id", "edited_by_id"),
    ),
)  # fmt: skip
_PARENTS = (_DATASET, _RUN, _VERSION)
"""Kinds whose rows may have a parent of the same kind."""
_NOT_IMPORTED = {
    "members.jsonl": ("members", "Nobody gets access by an import: invite them."),
    "audit.jsonl": ("records of the activity", "They are facts about the server that made them."),
    "frozen_figures.jsonl": (
        "data of frozen figures", "Figures are drawn again, from the runs that are imported.",
    ),
}  # fmt: skip
"""Tables that the import does not read: what their rows are, and why."""
_NEVER = LeftOut(
    "tokens, links, invitations, alerts and policies",
    None,
    "No export has them: secrets and rights stay where they were given.",
)
_METADATA = {"workspace.json", "people.jsonl", "missing.jsonl", "report_versions.jsonl", MANIFEST}


def check(
    path: Path,
    importer: User,
    into: Workspace | None,
    name: str,
    report: Report = lambda text: None,
) -> Summary:
    """Checks an export; arguments as of `services.import_workspace`. `report` gets each of `PHASES`
    phases as it begins.

    Raises:
        ImportRefused: the file cannot be imported, or was before; names the member and the remedy.
        AllowanceSpent: the import would exceed a limit of the server.
        OSError: the file cannot be read.
    """
    with opened(path) as archive:
        refuse_repeated(archive, importer, into)
        report("comparing with the digests of the manifest")
        archive.verify()
        report("reading the tables")
        refuse_quota(archive)
        checked = _Checked(archive, People(archive, importer, known=False))
        for table in _TABLES:
            checked.read(table)
        checked.refuse_lost_parents()
        report("reading the logs of runs")
        checked.read_logs()
        about = about_of(archive)
        _refuse_allowances(checked, importer, into, name or about.name)
        size = sum(archive.size(one) for one in archive)
        return Summary(
            about.name, about.grove, size, list(checked.included()), list(checked.left_out())
        )


def _refuse_allowances(
    checked: _Checked, importer: User, into: Workspace | None, name: str
) -> None:
    """Raises `AllowanceSpent` if the server's limits leave no room for the import."""
    with transaction.atomic():
        if into is None:
            refuse_workspace(name, importer)
        refuse_projects(name, into, checked.counts["projects.jsonl"])
    stored = events_of(into.pk) if into else 0
    refuse_events("file", "the file", stored, checked.events)


class _Checked:
    """What was read of an export so far."""

    def __init__(self, archive: Archive, people: People):
        self._archive, self._people = archive, people
        self._ids = Ids()
        self._parents: list[tuple[str, str, Any]] = []
        self._datasets: set[int] = set()
        self._models: set[int] = set()
        self._files: dict[int, list[str]] = {}
        self._lost: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        """Rows by member, and rows of further kinds."""
        self.events = 0
        self._tracked: set[Any] = set()
        self._runs: list[records.Run] = []

    def read(self, table: _Table) -> None:
        """Reads a table. Raises `ImportRefused` for a row that the import would refuse."""
        for row in self._archive.rows(table.member, table.kind):
            self.counts[table.member] += 1
            if table.name:
                self._ids.add(table.member, table.name, row.id, True)
            for column, kind in table.refers.items():
                self._ids.get(table.member, kind, getattr(row, column))
            for column in table.people:
                if (person := getattr(row, column)) is not None:
                    self._people.name(table.member, person)
            if table.name in _PARENTS and row.parent_id is not None:
                self._parents.append((table.member, table.name, row.parent_id))
            self._look(table.member, row)

    def refuse_lost_parents(self) -> None:
        """Raises `ImportRefused` for a row whose parent is not in the file."""
        for member, kind, parent in self._parents:
            self._ids.get(member, kind, parent)

    def read_logs(self) -> None:
        """Reads the log of each run. Raises `ImportRefused` for an event that cannot be stored."""
        for run in self._runs:
            if run.tracked and run.id not in self._tracked:
                raise ImportRefused("runs.jsonl", f"run {run.id} has no row in tracking.jsonl.")
            for expected, event in enumerate(runs.events_in(self._archive, run.id), start=1):
                if event.seq != expected:
                    reason = f"event {event.seq} cannot follow event {expected - 1}."
                    raise ImportRefused(f"runs/{run.id}/events.ndjson", reason)
                self.events += 1

    def _look(self, member: str, row: Any) -> None:
        """Counts what differs once it is imported; refuses what the import would refuse."""
        if isinstance(row, records.Run):
            runs.refuse_run(member, row)
            self._runs.append(row)
            self._lost["active runs"] += row.state not in ENDED
        elif isinstance(row, records.Tracking):
            self._tracked.add(row.run_id)
        elif isinstance(row, records.DatasetVersion):
            self._datasets.add(row.dataset_id)
            is_lost = row.artifact_id and f"datasets/{row.id}/problems" not in self._archive
            self._lost["dataset versions"] += bool(is_lost)
            self._lost["server files"] += not row.artifact_id and names_a_file(row)
        elif isinstance(row, records.ModelVersion):
            self._models.add(row.model_id)
        elif isinstance(row, records.File):
            self._files.setdefault(row.version_id, []).append(row.name)
        elif isinstance(row, records.Promotion):
            self._lost["promotions"] += row.state == PromotionState.WAITING
        elif isinstance(row, records.Comment) and row.comparison:
            compared = runs.compared_in(member, row)
            self._lost["comparisons"] += None in map(self._run_of, compared)

    def _run_of(self, old: Any) -> Any:
        return self._ids.find(_RUN, old)

    def included(self) -> Iterable[Included]:
        """Yields what is imported, as far as there is any."""
        counts, lost = self.counts, self._lost
        without_files = sum(not self._has_files(one) for one in self._versions())
        lines = (
            ("projects", counts["projects.jsonl"], ""),
            ("experiments", counts["experiments.jsonl"], ""),
            ("runs", counts["runs.jsonl"], _note(
                lost["active runs"], "was active when it was exported and arrives as stopped",
                "were active when they were exported and arrive as stopped",
            )),
            ("events of runs", self.events, ""),
            ("datasets", len(self._datasets), ""),
            ("dataset versions", counts["datasets.jsonl"], "; ".join(filter(None, (
                _note(lost["dataset versions"], "arrives without its problems, which were lost",
                      "arrive without their problems, which were lost"),
                _note(lost["server files"], "names a file that this server's operator may list",
                      "name files that this server's operator may list"),
            )))),
            ("models", len(self._models), ""),
            ("model versions", counts["models.jsonl"], _note(
                without_files, "arrives without its files, which were lost",
                "arrive without their files, which were lost",
            )),
            ("aliases", counts["aliases.jsonl"], ""),
            ("promotions", counts["promotions.jsonl"], _note(
                lost["promotions"], "waited for a second person and arrives as withdrawn",
                "waited for a second person and arrive as withdrawn",
            )),
            ("evaluations", counts["evaluations.jsonl"], ""),
            ("searches", counts["searches.jsonl"], ""),
            ("comments", counts["comments.jsonl"], _note(
                lost["comparisons"], "is about a run of another workspace, too, and keeps its own",
                "are about runs of other workspaces, too, and keep their own",
            )),
            ("reports", counts["reports.jsonl"], ""),
        )  # fmt: skip
        return (Included(what, count, note) for what, count, note in lines if count)

    def left_out(self) -> Iterable[LeftOut]:
        """Yields what is not imported."""
        for member, (what, reason) in _NOT_IMPORTED.items():
            if count := self._lines(member):
                yield LeftOut(what, count, reason)
        earlier = self._lines("report_versions.jsonl") - self.counts["reports.jsonl"]
        if earlier > 0:
            yield LeftOut("earlier versions of reports", earlier, "The newest text is imported.")
        if others := set(self._people.mapping()) - {self._people.importer.username}:
            reason = "Everything is in your name; texts begin with the names of their authors."
            yield LeftOut("accounts of people", len(others), reason)
        if missing := self._missing():
            more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
            names = ", ".join(missing[:_NAMED])
            yield LeftOut("files", len(missing), f"Lost before the export: {names}{more}.")
        if unknown := self._unknown():
            reason = f"This version of Grove does not know them: {', '.join(unknown[:_NAMED])}."
            yield LeftOut("tables", len(unknown), reason)
        yield _NEVER

    def _versions(self) -> Iterable[Any]:
        return self._ids.olds(_VERSION)

    def _has_files(self, version: int) -> bool:
        names = self._files.get(version, [])
        return bool(names) and all(f"models/{version}/{one}" in self._archive for one in names)

    def _lines(self, member: str) -> int:
        return sum(1 for _ in self._archive.lines(member)) if member in self._archive else 0

    def _missing(self) -> list[str]:
        if "missing.jsonl" not in self._archive:
            return []
        rows = self._archive.rows("missing.jsonl", records.Missing)
        return [printable(one.name) for one in rows]

    def _unknown(self) -> list[str]:
        known = {one.member for one in _TABLES} | _NOT_IMPORTED.keys() | _METADATA
        return sorted(one for one in self._archive if "/" not in one and one not in known)


def _note(count: int, one: str, many: str) -> str:
    """Returns the note about so many objects; empty for none."""
    return f"{count} {one if count == 1 else many}" if count else ""
