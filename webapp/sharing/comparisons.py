"""Links to a comparison: creation, display and revocation.

Invariant: a guest sees of the compared runs what the comparison shows, without the sources of
models and problems, and without an address of anything else; a frozen link shows nothing later than
its creation; a link shows nothing if one of its runs is gone or its maker may no longer share one
of them. People of every workspace that contains one of its runs see it and may revoke it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import reverse

from webapp.accounts.models import User
from webapp.comparison import comparison
from webapp.experiments.models import Run
from webapp.experiments.selectors import visible_run
from webapp.projects.models import Project
from webapp.projects.permissions import Action, may, require
from webapp.sharing import links
from webapp.sharing.models import ComparisonShare
from webapp.telemetry import guests
from webapp.telemetry.stream.view import View

_SALT = "webapp.sharing.comparisons"


def runs_to_compare(user: User, run_ids: Sequence[uuid.UUID]) -> list[Run]:
    """The runs, each once; raises `Http404` if one does not exist for `user`."""
    return [visible_run(user, run_id) for run_id in dict.fromkeys(run_ids)]


def require_sharing(user: User, runs: Sequence[Run]) -> None:
    """Raises `PermissionDenied` unless `user` may share every one of the runs."""
    for run in runs:
        require(user, Action.SHARE, run.project)


def share(
    runs: Sequence[Run], split: str, user: User, lifetime: timedelta, *, frozen: bool
) -> tuple[ComparisonShare, str]:
    """Returns the share and the path of its link, whose secret is stored only as a digest."""
    shown = {"runs": [run.pk for run in runs], "split": split}
    heads = {"until": [run.head_seq for run in runs]}
    shown["frozen"] = heads | comparison_data(runs, split) if frozen else None
    link, secret = links.create(ComparisonShare, _SALT, user, lifetime, **shown)
    return link, reverse("shared-comparison", args=[secret])


def shares_of(runs: Sequence[Run]) -> QuerySet[ComparisonShare]:
    """Active links to the comparison of exactly these runs, newest first; of one run, to all
    comparisons that include it, whatever the others are."""
    ids = [run.pk for run in runs]
    shares = ComparisonShare.objects.valid().select_related("created_by").order_by("-pk")
    return shares.filter(runs=ids) if len(ids) > 1 else shares.filter(runs__contains=ids)


def own_share(user: User, share_id: int) -> ComparisonShare:
    """Returns the share if `user` may revoke it, that is, may share any of its runs.

    Raises `Http404` if they see no run of it, `PermissionDenied` if they may share none that they
    see.
    """
    share = ComparisonShare.objects.valid().filter(pk=share_id).first()
    seen = list(visible_runs_of(user, share)) if share else []
    if not seen:
        raise Http404
    if not any(may(user, Action.SHARE, run.project) for run in seen):
        require(user, Action.SHARE, seen[0].project)
    return share


def visible_runs_of(user: User, share: ComparisonShare) -> list[Run]:
    """The runs of the share that `user` may see, in its order."""
    seen = Run.objects.visible_to(user).select_related("experiment__project").in_bulk(share.runs)
    return [seen[run_id] for run_id in dict.fromkeys(share.runs) if run_id in seen]


def projects_of(share: ComparisonShare) -> list[Project]:
    """The projects that contain its runs."""
    return list(Project.objects.filter(experiments__runs__in=share.runs).distinct())


@dataclass(frozen=True)
class SharedComparison:
    """What a link shows of its runs."""

    share: ComparisonShare
    runs: list[Run]

    @cached_property
    def data(self) -> dict[str, Any]:
        """All but the curves (`comparison_data`); a request for a curve does not pay for it."""
        data = self.share.frozen or comparison_data(self.runs, self.share.split)
        # Again: a link of an older version froze settings that are not shown now.
        return data | {"settings": _shown(data["settings"])}

    def page(self, secret: str) -> dict[str, Any]:
        """{labels, curves, runs, frozen} for the scripts: runs are identified by their labels, and
        their addresses are the link's."""
        fields = ("label", "group", "agents", "owners", "figures")
        runs = [
            {name: run[name] for name in fields}
            | {"id": run["label"], "name": run["label"]}
            | {"url": f"/api/v1/shared/comparison/{secret}/{index}/metrics"}
            for index, run in enumerate(comparison.charted(self.runs))
        ]
        return {
            "labels": comparison.labels_of(self.runs),
            "curves": comparison.CURVES,
            "runs": runs,
            "frozen": self.share.frozen is not None,
        }

    def view(self, index: int) -> tuple[Run, View]:
        """A run, and what of its log is shown; raises `Http404` for an index without a run."""
        if index >= len(self.runs):
            raise Http404
        until = self.share.frozen["until"][index] if self.share.frozen else None
        return self.runs[index], View("", until)


def shared_comparison(secret: str) -> SharedComparison:
    """What a link shows; raises `Http404` if it shows nothing (any more)."""
    share = links.find(ComparisonShare.objects.all(), _SALT, secret)
    if share is None:
        raise Http404
    runs = Run.objects.select_related("experiment").in_bulk(share.runs)
    if len(runs) != len(set(share.runs)) or not links.maker_may_share(share, projects_of(share)):
        raise Http404
    return SharedComparison(share, [runs[run_id] for run_id in share.runs])


def comparison_data(runs: Sequence[Run], split: str) -> dict[str, Any]:
    """{labels, names, split, settings, pairs}: a guest's view of the comparison, in plain
    values."""
    settings = comparison.settings_that_differ(runs)
    return {
        "labels": comparison.labels_of(runs),
        "names": [str(run) for run in runs],
        "split": split,
        "settings": _shown(settings),
        "pairs": [
            {
                "label": pair.label,
                "steps": pair.steps and list(pair.steps),
                "figures": [asdict(figure) for figure in pair.figures],
                "missing": pair.missing,
            }
            for pair in comparison.pairs(runs, split)
        ],
    }


def _shown(settings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in settings if guests.shows_setting(row["path"])]
