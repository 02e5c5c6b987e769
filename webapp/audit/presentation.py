"""Audit records as plain sentences: "Ada removed Ben from Lab"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from webapp.audit.models import CommentEvent, RunActionEvent
from webapp.experiments.models import RunAction
from webapp.projects.models import Role, Visibility
from webapp.registry.models import PromotionState

MACHINE = "Grove"
"""Actor of changes that no request made: workers, and commands on the server."""
GONE = "somebody whose account is gone"

_DID = {
    RunAction.Kind.STARTED: "started {}",
    RunAction.Kind.CLONED: "cloned {}",
    RunAction.Kind.FORKED: "forked {}",
    RunAction.Kind.STOPPED: "asked {} to stop",
    RunAction.Kind.KILLED: "killed {}",
    RunAction.Kind.RESUMED: "resumed {}",
    RunAction.Kind.PRIORITY: "changed the priority of {}",
    RunAction.Kind.NOTE: "wrote a note at {}",
}


class Names:
    """Names by user id, of the people whom the rows of a page name."""

    def __init__(self, names: Mapping[int, str]):
        self._names = names

    def of(self, user_id: int | None) -> str:
        return MACHINE if user_id is None else self._names.get(user_id, GONE)


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
    told = (actor_id(row), getattr(row, "user_id", None), getattr(row, "author_id", None))
    return {one for one in told if one is not None}


def sentence(source: str, row: Any, names: Names) -> str:
    """One clause, without a full stop. `row` is of the source of that name in `selectors`."""
    return f"{names.of(actor_id(row))} {_WORDS[source](row, names)}"


def _workspace(row: Any, names: Names) -> str:
    done = {"made": "made", "changed": "named", "gone": "deleted"}[row.pgh_label]
    return f"{done} the workspace {row.name}"


def _membership(row: Any, names: Names) -> str:
    role, member = Role(row.role).label.lower(), names.of(row.user_id)
    themselves = actor_id(row) == row.user_id
    if row.pgh_label == "changed":
        before = f", before {Role(row.before).label.lower()}" if row.before else ""
        return f"made {'themselves' if themselves else member} {role}{before}"
    if row.pgh_label == "made":
        return f"joined {row.workspace} as {role}" if themselves else f"added {member} as {role}"
    return f"left {row.workspace}" if themselves else f"removed {member} from {row.workspace}"


def _invitation(row: Any, names: Names) -> str:
    done = "made" if row.pgh_label == "made" else "revoked"
    works = "once" if row.single_use else "until it is revoked"
    return f"{done} an invitation as {Role(row.role).label.lower()} that works {works}"


def _project(row: Any, names: Names) -> str:
    done = {"made": "made", "changed": "changed", "gone": "deleted"}[row.pgh_label]
    seen = "" if row.pgh_label == "gone" else f", seen by {Visibility(row.visibility).label}"
    return f"{done} the project {row.name}{seen}"


def _token(row: Any, names: Names) -> str:
    whose = "" if actor_id(row) == row.user_id else f" of {names.of(row.user_id)}"
    what = f"the token {row.name} ({row.prefix}…){whose}"
    return (
        f"made {what} for {', '.join(row.scopes)}" if row.pgh_label == "made" else f"revoked {what}"
    )


def _share(row: Any, names: Names) -> str:
    part = "" if row.tree is None else f"tree {row.tree} of "
    moment = "" if row.until is None else f" as of event {row.until}"
    done = "made" if row.pgh_label == "made" else "revoked"
    return f"{done} a share link to {part}{row.run}{moment}"


def _comparison(row: Any, names: Names) -> str:
    done = "made" if row.pgh_label == "made" else "revoked"
    return f"{done} a share link to a comparison of {len(row.runs)} runs"


def _run_action(row: Any, names: Names) -> str:
    return _DID[RunAction.Kind(row.kind)].format(row.run)


def _run_mark(row: Any, names: Names) -> str:
    if row.pgh_label == "archived":
        return f"{'archived' if row.archived_at else 'restored'} {row.pgh_obj}"
    return f"changed the {'tags' if row.pgh_label == 'tagged' else 'notes'} of {row.pgh_obj}"


def _comment(row: Any, names: Names) -> str:
    done = {"made": "wrote", "changed": "changed", "gone": "removed"}[row.pgh_label]
    whose = "" if actor_id(row) == row.author_id else f" of {names.of(row.author_id)}"
    where = "" if row.node is None else f"node {row.node} of tree {row.tree} of "
    return f"{done} a comment{whose} on {where}{row.run}"


def _dataset(row: Any, names: Names) -> str:
    done = "added" if row.pgh_label == "made" else "deleted"
    return f"{done} the dataset {row.dataset} v{row.number}"


def _model(row: Any, names: Names) -> str:
    done = {"made": "added", "described": "changed the notes of", "gone": "deleted"}[row.pgh_label]
    source = f", learned by {row.run}" if row.run else ""
    return f"{done} the model {row.model} v{row.number}{source}"


def _promotion(row: Any, names: Names) -> str:
    what = f"{row.alias} of {row.model}"
    wish = f"{what} to v{row.number}" if row.number else f"{what} to nothing"
    asked = row.pgh_label == "made"
    return {
        PromotionState.WAITING: f"asked to move {wish}",
        PromotionState.DONE: f"moved {wish}" if asked else f"agreed to move {wish}",
        PromotionState.REFUSED: f"refused to move {wish}",
        PromotionState.WITHDRAWN: f"took back the wish to move {wish}",
    }[PromotionState(row.state)]


def _setting(row: Any, names: Names) -> str:
    done = "asked for" if row.pgh_label == "made" else "no longer asks for"
    return f"{done} a second person at each promotion"


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
    "dataset": _dataset,
    "model": _model,
    "promotion": _promotion,
    "setting": _setting,
}
