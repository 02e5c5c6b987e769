"""What the deletion of a run deletes, and what prevents it: said before, and checked again then."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.db.models import Q, Sum

from webapp.alerts.models import AlertRule
from webapp.comments.models import Comment
from webapp.experiments.models import Run, Star
from webapp.experiments.scheduling.states import ENDED
from webapp.registry.deletion import references
from webapp.registry.models import Evaluation, ModelVersion, VersionFile
from webapp.reports.content import directives_in
from webapp.reports.models import ReportPage
from webapp.sharing.models import ComparisonShare, Share
from webapp.telemetry.models import Metric

_SHOWN = 3
NEEDS_ORIGIN = ~Q(state__in=ENDED) | Q(started_at=None)
"""Forks that may still begin with the checkpoint of their origin: one that was stopped before its
first start does so when it is resumed."""


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """Everything that is deleted with a run; sizes are bytes."""

    name: str
    events: int
    metrics: int
    folder_bytes: int
    """Of its folder: log, checkpoints, weights."""
    comments: int
    """On it, its nodes and comparisons with it."""
    shares: int
    """Links that still show it, alone or in a comparison."""
    stars: int
    versions: list[str] = field(default_factory=list)
    """Registered model versions of it, deleted with their files."""
    version_bytes: int = 0
    evaluation: str = ""
    """The evaluation of a model version that it executed."""
    experiment: bool = False
    """Whether its experiment goes too, because it has no other run and no alert rule."""
    kept: list[str] = field(default_factory=list)
    """What came from it and stays: forks, which no longer name their origin, files of its model
    versions that others have too, and reports with figures of it."""
    refusals: list[str] = field(default_factory=list)
    """What prevents the deletion, each with the remedy; empty if nothing does."""


def plan_of(run: Run) -> DeletionPlan:
    """The plan of the run as it is now."""
    versions = list(versions_of(run))
    files = VersionFile.objects.filter(version__in=versions)
    evaluation = Evaluation.objects.filter(run=run).select_related(
        "version__model", "dataset_version__dataset"
    )
    return DeletionPlan(
        name=str(run),
        events=run.head_seq,
        metrics=Metric.objects.filter(run=run).count(),
        folder_bytes=bytes_below(folder_of(run)),
        comments=Comment.objects.filter(run=run).count() + comparisons_with(run).count(),
        shares=Share.objects.filter(run=run).valid().count()
        + ComparisonShare.objects.filter(runs__contains=[run.pk]).valid().count(),
        stars=Star.objects.filter(run=run).count(),
        versions=[str(one) for one in versions],
        version_bytes=files.aggregate(sum=Sum("size"))["sum"] or 0,
        evaluation=str(evaluation[0]) if evaluation else "",
        experiment=takes_experiment(run),
        kept=list(kept_of(run, versions)),
        refusals=list(refusals(run)),
    )


def refusals(run: Run) -> Iterator[str]:
    """Yields what prevents the deletion of the run, by name, with the remedy."""
    if run.run_state not in ENDED:
        yield f"it is {run.run_state.label.lower()}: stop it first"
    forks = run.forks.filter(NEEDS_ORIGIN).select_related("experiment").order_by("created")
    if forks:
        yield (
            f"{_some([str(one) for one in forks])} starts from its checkpoint: stop it, or delete "
            "it if it never started"
        )
    versions = list(versions_of(run))
    inside = {version.pk for version in versions}
    for version in versions:
        if uses := "; ".join(references(version, inside)):
            yield f"its model version {version} is in use ({uses}): remove these first"


def kept_of(run: Run, versions: list[ModelVersion]) -> Iterator[str]:
    """Yields what stays although it came from the run, by name."""
    forks = [str(one) for one in run.forks.select_related("experiment").order_by("created")]
    if forks:
        yield f"{_some(forks)}, started from its checkpoint"
    files = VersionFile.objects.filter(version__in=versions)
    shared = VersionFile.objects.exclude(version__in=versions).filter(
        sha256__in=files.values("sha256")
    )
    others = sorted({str(one.version) for one in shared.select_related("version__model")})
    if others:
        yield f"files that {_some(others)} has too"
    yield from _reports_of(run)


def _reports_of(run: Run) -> Iterator[str]:
    """Yields the reports of its project that have figures of it; those of other projects need not
    be visible to who deletes it."""
    pages = ReportPage.objects.filter(project=run.project, text__icontains=str(run.pk))
    live, frozen = [], []
    for page in pages.order_by("pk"):
        figures = [one for one in directives_in(page.text) if run.pk in one.runs]
        if any(one.frozen for one in figures):
            frozen.append(page.title)
        if any(not one.frozen for one in figures):
            live.append(page.title)
    if frozen:
        yield f"frozen figures of it in {_some(frozen)}"
    if live:
        yield f"{_some(live)}, whose live figures of it then show an error"


def versions_of(run: Run) -> Iterator[ModelVersion]:
    """The registered versions of the run, oldest first."""
    yield from ModelVersion.objects.filter(run=run).select_related("model__project").order_by("pk")


def comparisons_with(run: Run):
    """Comments on comparisons of the run with others, which are stored with another run."""
    return Comment.objects.filter(compared__run=run).exclude(run=run)


def takes_experiment(run: Run) -> bool:
    others = Run.objects.filter(experiment=run.experiment_id).exclude(pk=run.pk)
    rules = AlertRule.objects.filter(experiment=run.experiment_id)
    return not others.exists() and not rules.exists()


def folder_of(run: Run) -> Path:
    return Path(settings.RUNS_DIR) / str(run.pk)


def bytes_below(folder: Path) -> int:
    """Bytes of all files below the folder; 0 if it does not exist. A file that disappears while
    they are counted does not count; links are not followed."""
    total, pending = 0, [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(Path(entry.path))
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
