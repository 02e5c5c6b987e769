"""Readers of a report: whose rights decide which runs its figures show.

Invariant: a reader sees no run that the person may not see; a guest of a link sees none that the
link's maker may not share; a frozen figure is read from runs of the report's own project alone,
because everybody who sees that project sees it from then on.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from engine.events.vocabulary import RunState
from webapp.accounts.models import User
from webapp.experiments.models import Run
from webapp.experiments.scheduling.states import ENDED
from webapp.experiments.selectors import visible_runs
from webapp.projects.models import Project
from webapp.projects.permissions import Action, may
from webapp.reports.directives import BlockError, Directive
from webapp.telemetry import guests


@dataclass
class Reader:
    """A person who reads a report, or the maker of the link by which somebody does."""

    user: User
    project: Project
    """Of the report."""
    is_guest: bool = False
    _shareable: dict[int, bool] = field(default_factory=dict)

    def runs_of(self, directive: Directive) -> tuple[list[Run], list[BlockError]]:
        """Returns the runs that a block names and the reader sees, in its order, and the reasons
        why others are missing. Raises `BlockError` if there is none."""
        visible = visible_runs(self.user).filter(pk__in=directive.runs)
        by_id = {run.pk: run for run in visible if self.sees(run, directive)}
        missing = [self._missing(directive, one) for one in directive.runs if one not in by_id]
        if not by_id:
            raise missing[0]
        return [by_id[one] for one in directive.runs if one in by_id], missing

    def sees(self, run: Run, directive: Directive) -> bool:
        """Whether a block shows this reader the run, which its person sees."""
        if directive.frozen and run.project.pk != self.project.pk:
            return False
        return not self.is_guest or self.may_share(run.project)

    def sees_series(self, name: str) -> bool:
        """Whether a block shows this reader the numbers of that name."""
        return not self.is_guest or guests.shows_series(name)

    def may_share(self, project: Project) -> bool:
        """Whether the person may share what is in the project."""
        if project.pk not in self._shareable:
            self._shareable[project.pk] = may(self.user, Action.SHARE, project)
        return self._shareable[project.pk]

    def _missing(self, directive: Directive, run_id: uuid.UUID) -> BlockError:
        remedy = "there is no such run that you may see; check the id"
        if self.is_guest:
            line = directive.error("run", run_id, "").line
            return BlockError(line, "run", "", "this run is not shared by the link")
        if directive.frozen:
            remedy = (
                "there is no such run of the report's project that you may see; a run of another "
                "project is shown without the line frozen"
            )
        return directive.error("run", run_id, remedy)


def common(
    directive: Directive, runs: Iterable[Run], missing: Iterable[BlockError] = ()
) -> dict[str, Any]:
    """Returns what the data of every kind have, see `reports.embeds`."""
    runs = list(runs)
    return {
        "kind": directive.kind.value,
        "runs": [{"id": str(run.pk), "name": str(run), "project": run.project.pk} for run in runs],
        "missing": [one.to_dict() for one in missing],
        "is_live": any(RunState(run.state) not in ENDED for run in runs),
    }
