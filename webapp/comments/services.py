"""Creation, editing and deletion of comments, and notification of users.

Invariant: no user is notified of what they may not see, nor of what they wrote themselves, nor
twice of one comment. Callers have checked who may write (`projects.permissions`).
"""

from __future__ import annotations

import re
from functools import partial

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from webapp.accounts.models import User
from webapp.comments.mail import mail_notices
from webapp.comments.models import Comment, ComparedRun, Notice, Reason
from webapp.comments.targets import Target
from webapp.experiments.models import Run
from webapp.experiments.services import announce
from webapp.projects.models import Membership

LONGEST = 10_000
MOST_MENTIONS = 20
_MENTION = re.compile(r"(?<![\w@./+-])@([\w.@+-]{1,150})")


@transaction.atomic
def write_comment(target: Target, author: User, text: str, site: str) -> Comment:
    """Posts a comment; `site` starts the addresses in mail, such as https://grove.example."""
    comment = Comment.objects.create(
        run=target.runs[0],
        tree=target.tree,
        node=target.node,
        comparison=target.comparison,
        author=author,
        text=text,
    )
    if target.comparison:
        made = [ComparedRun(comment=comment, run=run) for run in target.runs]
        ComparedRun.objects.bulk_create(made)
    reasons = dict.fromkeys(_writers(target), Reason.ANSWERED)
    reasons |= dict.fromkeys((run.created_by for run in target.runs), Reason.OWN_RUN)
    reasons |= dict.fromkeys(mentioned(target, text), Reason.MENTIONED)
    _notify(comment, target, reasons, site)
    _announce(comment)
    return comment


@transaction.atomic
def change_comment(comment: Comment, target: Target, text: str, site: str) -> None:
    """Edits the comment and notifies users whom the new text mentions for the first time."""
    comment.text, comment.edited = text, timezone.now()
    comment.save(update_fields=["text", "edited"])
    _notify(comment, target, dict.fromkeys(mentioned(target, text), Reason.MENTIONED), site)
    _announce(comment)


@transaction.atomic
def delete_comment(comment: Comment) -> None:
    """Deletes the comment with its notices."""
    _announce(comment)
    comment.delete()


def _announce(comment: Comment) -> None:
    """Notifies viewers of the run over its stream; a comparison has none."""
    if not comment.comparison:
        Run.objects.filter(pk=comment.run_id).update(comments_changed=F("comments_changed") + 1)
        announce(comment.run_id)


def read_notices(user: User, *ids: int) -> None:
    """Marks these notices as read; without ids, all."""
    unread = Notice.objects.filter(user=user.pk, read_at=None)
    (unread.filter(pk__in=ids) if ids else unread).update(read_at=timezone.now())


def mentioned(target: Target, text: str) -> list[User]:
    """Members whom the text mentions by @name, `MOST_MENTIONS` at most."""
    usernames = list(
        dict.fromkeys(name for match in _MENTION.findall(text) for name in _names(match))
    )
    workspaces = {project.workspace_id for project in target.projects}
    members = Membership.objects.filter(workspace__in=workspaces).values("user")
    return list(User.objects.filter(username__in=usernames, pk__in=members)[:MOST_MENTIONS])


def _names(match: str) -> list[str]:
    """Both readings of a match: a name may contain dots and dashes, and a sentence may end after
    it."""
    return [match, match.rstrip(".+-@")]


def _writers(target: Target) -> list[User]:
    return list(User.objects.filter(pk__in=target.thread().values("author")))


def _notify(comment: Comment, target: Target, reasons: dict[User, Reason], site: str) -> None:
    notices = [
        Notice(user=user, comment=comment, reason=reason)
        for user, reason in reasons.items()
        if user.pk != comment.author_id and _sees(user, target)
    ]
    notified = set(comment.notices.values_list("user", flat=True))
    created = Notice.objects.bulk_create(one for one in notices if one.user_id not in notified)
    mentioned_ids = [one.pk for one in created if one.reason == Reason.MENTIONED]
    if mentioned_ids:
        transaction.on_commit(partial(mail_notices, mentioned_ids, site))


def _sees(user: User, target: Target) -> bool:
    ids = [run.pk for run in target.runs]
    return Run.objects.visible_to(user).filter(pk__in=ids).count() == len(ids)
