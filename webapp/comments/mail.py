"""Mail to mentioned users, where mail is configured (`settings.MAIL`).

Invariant: mail goes only to addresses that their owners have verified; a failure to send it never
affects the comment, which the inbox shows anyway.
"""

from __future__ import annotations

import logging
import smtplib
from collections.abc import Collection

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from webapp.accounts.models import User
from webapp.comments.models import Notice
from webapp.comments.targets import address_of, target_of

logger = logging.getLogger(__name__)


def mail_notices(notice_ids: Collection[int], site: str) -> None:
    """Sends one message to each person; `site` is the beginning of addresses."""
    if not settings.MAIL_IS_SENT:
        return
    notices = Notice.objects.filter(pk__in=notice_ids).select_related("user", "comment__author")
    messages = [one for notice in notices if (one := _message(notice, site))]
    try:
        get_connection().send_messages(messages)
    except (OSError, smtplib.SMTPException) as error:
        logger.warning("mail of a mention was not sent (%s); the inbox shows it", error)


def verified_address(user: User) -> str | None:
    """The address at which the user gets mail; None without a verified one."""
    verified = EmailAddress.objects.filter(user=user, verified=True)
    return verified.order_by("-primary").values_list("email", flat=True).first()


def _message(notice: Notice, site: str) -> EmailMessage | None:
    address = verified_address(notice.user)
    if address is None:
        return None
    if notice.comment is None:
        subject = " ".join(f"{settings.ACCOUNT_EMAIL_SUBJECT_PREFIX}{notice.title}".split())
        return EmailMessage(subject, f"{notice.title}\n\n{site}{notice.path}\n", to=[address])
    comment, about = notice.comment, target_of(notice.comment, notice.user)
    subject = " ".join(
        f"{settings.ACCOUNT_EMAIL_SUBJECT_PREFIX}{comment.author} mentioned you at {about}".split()
    )
    body = (
        f"{comment.author} wrote about {about}:\n\n{comment.text}\n\n{site}{address_of(comment)}\n"
    )
    return EmailMessage(subject, body, to=[address])
