"""Audit records as plain sentences: "Ada removed Ben from Lab"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from webapp.alerts.models import RuleKind
from webapp.audit.models import CommentEvent, RunActionEvent
from webapp.experiments.models import RunAction
from webapp.projects.models import Role, Visibility
from webapp.registry.models import PromotionState

MACHINE = "Grove"
"""Actor of changes that no request made: workers, and commands on the server."""
DELETED_ACCOUNT = "a deleted account"

_DID = {
    RunAction.Kind.STARTED: "started {}",
    RunAction.Kind.CLONED: "cloned {}",
    RunAction.Kind.FORKED: "forked {}",
    RunAction.Kind.STOPPED: "requested to stop {}",
    RunAction.Kind.KILLED: "killed {}",
    RunAction.Kind.RESUMED: "resumed {}",
    RunAction.Kind.PRIORITY: "changed the priority of {}",
    RunAction.Kind.NOTE: "wrote a note on {}",
}


class Names:
    """Names by user id, of the people whom the rows of a page name."""

    def __init__(self, names: Mapping[int, str]):
        self._names = names

    def of(self, user_id: int | None) -> str:
        return MACHINE if user_id is None else self._names.get(user_id, DELETED_ACCOUNT)


def actor_id(row: Any) -> int | None:
    """Id of the acting user; None is the machine. A run's action and a new comment name their
    person themselves."""
    if isinstance(row, RunActionEvent):
        return row.user_id
    if isinstance(row, CommentEvent) and row.pgh_label == "made":
        return row.author_id
    return (row.pgh_context or {}).get("user")


def people_in(row: Any) -> set[int]:
    """Ids of all people whom the sentence names."""
    ids = (actor_id(row), getattr(row, "user_id", None), getattr(row, "author_id", None))
    return {one for one in ids if one is not None}


def sentence(source: str, row: Any, names: Names) -> str:
    """One clause, without a full stop. `row` is of the source of that name in `selectors`."""
    return f"{names.of(actor_id(row))} {_WORDS[source](row, names)}"


def _workspace(row: Any, names: Names) -> str:
    done = {"made": "created", "changed": "renamed", "gone": "deleted"}[row.pgh_label]
    return f"{done} the workspace {row.name}"


def _membership(row: Any, names: Names) -> str:
    role, member = Role(row.role).label.lower(), names.of(row.user_id)
    themselves = actor_id(row) == row.user_id
    if row.pgh_label == "changed":
        before = f" from {Role(row.before).label.lower()}" if row.before else ""
        whose = "their own role" if themselves else f"the role of {member}"
        return f"changed {whose}{before} to {role}"
    if row.pgh_label == "made":
        return f"joined {row.workspace} as {role}" if themselves else f"added {member} as {role}"
    return f"left {row.workspace}" if themselves else f"removed {member} from {row.workspace}"


def _invitation(row: Any, names: Names) -> str:
    done = "created" if row.pgh_label == "made" else "revoked"
    works = "once" if row.single_use else "until it is revoked"
    return f"{done} an invitation as {Role(row.role).label.lower()} that works {works}"


def _project(row: Any, names: Names) -> str:
    done = {"made": "created", "changed": "changed", "gone": "deleted"}[row.pgh_label]
    seen = "" if row.pgh_label == "gone" else f", visible to {Visibility(row.visibility).label}"
    return f"{done} the project {row.name}{seen}"


def _token(row: Any, names: Names) -> str:
    owner = "" if actor_id(row) == row.user_id else f" of {names.of(row.user_id)}"
    what = f"the token {row.name} ({row.prefix}…){owner}"
    return (
        f"created {what} for {', '.join(row.scopes)}"
        if row.pgh_label == "made"
        else f"revoked {what}"
    )


def _share(row: Any, names: Names) -> str:
    part = "" if row.tree is None else f"tree {row.tree} of "
    moment = "" if row.until is None else f" as of event {row.until}"
    done = "created" if row.pgh_label == "made" else "revoked"
    return f"{done} a share link to {part}{row.run}{moment}"


def _comparison(row: Any, names: Names) -> str:
    done = "created" if row.pgh_label == "made" else "revoked"
    return f"{done} a share link to a comparison of {len(row.runs)} runs"


def _run_action(row: Any, names: Names) -> str:
    return _DID[RunAction.Kind(row.kind)].format(row.run)


def _run_mark(row: Any, names: Names) -> str:
    if row.pgh_label == "archived":
        return f"{'archived' if row.archived_at else 'restored'} {row.pgh_obj}"
    return f"changed the {'tags' if row.pgh_label == 'tagged' else 'notes'} of {row.pgh_obj}"


def _comment(row: Any, names: Names) -> str:
    done = {"made": "wrote", "changed": "edited", "gone": "deleted"}[row.pgh_label]
    author = "" if actor_id(row) == row.author_id else f" of {names.of(row.author_id)}"
    where = "" if row.node is None else f"node {row.node} of tree {row.tree} of "
    return f"{done} a comment{author} on {where}{row.run}"


def _report(row: Any, names: Names) -> str:
    done = {"made": "wrote", "changed": "edited", "gone": "deleted"}[row.pgh_label]
    return f"{done} the report {row.title} of {row.project}"


def _report_share(row: Any, names: Names) -> str:
    done = "created" if row.pgh_label == "made" else "revoked"
    return f"{done} a share link to the report {row.title}"


def _dataset(row: Any, names: Names) -> str:
    done = "added" if row.pgh_label == "made" else "deleted"
    return f"{done} the dataset {row.dataset} v{row.number}"


def _model(row: Any, names: Names) -> str:
    done = {"made": "added", "described": "changed the notes of", "gone": "deleted"}[row.pgh_label]
    source = f", trained by {row.run}" if row.run else ""
    return f"{done} the model {row.model} v{row.number}{source}"


def _promotion(row: Any, names: Names) -> str:
    what = f"{row.alias} of {row.model}"
    move = f"{what} to v{row.number}" if row.number else f"{what} to nothing"
    is_new = row.pgh_label == "made"
    return {
        PromotionState.WAITING: f"requested to move {move}",
        PromotionState.DONE: f"moved {move}" if is_new else f"approved moving {move}",
        PromotionState.REFUSED: f"refused to move {move}",
        PromotionState.WITHDRAWN: f"withdrew the request to move {move}",
    }[PromotionState(row.state)]


def _setting(row: Any, names: Names) -> str:
    done = "required" if row.pgh_label == "made" else "no longer requires"
    return f"{done} a second person at each promotion"


def _run_deletion(row: Any, names: Names) -> str:
    why = ", which was due by the workspace's retention" if row.by_policy else ""
    return f"deleted the run {row.name}{why}"


def _retention(row: Any, names: Names) -> str:
    if row.pgh_label == "gone":
        return "decided that the workspace keeps its runs for good"
    return f"decided that the workspace keeps its runs for {row.days} days after their end"


def _alert_rule(row: Any, names: Names) -> str:
    done = {"made": "added", "changed": "changed", "gone": "deleted"}[row.pgh_label]
    place = f" about {row.project}" if row.project else ""
    if row.user_id is None:
        owner = "of the project"
    else:
        is_own = actor_id(row) == row.user_id
        owner = "of their own" if is_own else f"of {names.of(row.user_id)}"
    return f"{done} an alert rule {owner}{place}: {RuleKind(row.kind).label.lower()}"


def _alert_channel(row: Any, names: Names) -> str:
    done = {
        "made": "added",
        "switched": "disabled" if row.disabled_at else "enabled",
        "rotated": "replaced the secret of",
        "gone": "deleted",
    }[row.pgh_label]
    return f"{done} the alert channel {row.name} ({row.kind}) of {row.project}"


_WORDS: dict[str, Callable[[Any, Names], str]] = {
    "workspace": _workspace,
    "membership": _membership,
    "invitation": _invitation,
    "project": _project,
    "token": _token,
    "share": _share,
    "comparison": _comparison,
    "run-action": _run_action,
    "run-mark": _run_mark,
    "comment": _comment,
    "report": _report,
    "report-share": _report_share,
    "dataset": _dataset,
    "model": _model,
    "promotion": _promotion,
    "setting": _setting,
    "run-deletion": _run_deletion,
    "retention": _retention,
    "alert-rule": _alert_rule,
    "alert-channel": _alert_channel,
}
