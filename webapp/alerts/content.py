"""Content of notices: JSON for webhooks, text for Slack-compatible servers and for mail."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from webapp.alerts.models import Alert, Delivery

LONGEST_SLACK = 2000
"""Characters that every such server takes: Discord refuses a longer text."""
_NOTHING = "\u200b"
"""A space without a width."""


def webhook_body(delivery: Delivery) -> bytes:
    """The body of a webhook, which `docs/guides/alerts.md` documents."""
    alert = delivery.alert
    payload: dict[str, Any] = {
        "id": str(delivery.pk),
        "type": alert.kind,
        "title": alert.title,
        "cause": alert.cause,
        "since": alert.since.isoformat(),
        "at": alert.created.isoformat(),
        "link": link_of(alert),
        "rule": str(alert.rule) if alert.rule else None,
        "workspace": str(alert.project.workspace) if alert.project else None,
        "project": str(alert.project) if alert.project else None,
        "run": _run(alert),
    }
    return json.dumps(payload, ensure_ascii=False).encode()


def slack_body(delivery: Delivery) -> bytes:
    """`{"text": ...}` in Slack's mrkdwn, which Mattermost, Rocket.Chat and Discord's `/slack`
    addresses understand too."""
    alert = delivery.alert
    title = f"*{_fitting(alert.title, LONGEST_SLACK // 2)}*"
    link = f"Since {_time(alert)} · <{link_of(alert)}|Open in Grove>"
    cause = _fitting(alert.cause, LONGEST_SLACK - len(title) - len(link) - 2)
    text = "\n".join(one for one in (title, cause, link) if one)
    return json.dumps({"text": text}, ensure_ascii=False).encode()


def mail_text(alerts: Sequence[Alert]) -> tuple[str, str]:
    """Subject and text of the mail with these alerts: of several a digest."""
    first = alerts[0]
    subject = first.title if len(alerts) == 1 else f"{len(alerts)} alerts: {first.title} and others"
    text = "\n\n".join(_paragraph(alert) for alert in alerts)
    settings_link = f"{settings.SITE_URL}/notifications/"
    prefix = settings.ACCOUNT_EMAIL_SUBJECT_PREFIX
    subject = " ".join(f"{prefix}{subject}".split())[:200]
    return subject, f"{text}\n\nChange what you are notified of: {settings_link}\n"


def link_of(alert: Alert) -> str:
    return f"{settings.SITE_URL}{alert.path}"


def _run(alert: Alert) -> dict[str, Any] | None:
    if alert.run is None:
        return None
    run = alert.run
    return {"id": str(run.pk), "name": str(run), "state": run.state, "step": run.step}


def _paragraph(alert: Alert) -> str:
    lines = [alert.title, *([alert.cause] if alert.cause else [])]
    return "\n".join([*lines, f"Since {_time(alert)}", link_of(alert)])


def _time(alert: Alert) -> str:
    return f"{alert.since:%Y-%m-%d %H:%M} UTC"


def _fitting(text: str, room: int) -> str:
    """The text as `_escaped`, cut at its end to so many characters."""
    kept, end = text, ""
    while kept and len(_escaped(kept)) + len(end) > room:
        kept, end = kept[: min(len(kept) - 1, room)], "…"
    return f"{_escaped(kept)}{end}"


def _escaped(text: str) -> str:
    """Escapes what Slack reads as a link or a mention, and breaks up what the other servers do:
    a run's name calls nobody, and shows no picture of another server."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return plain.replace("@", f"@{_NOTHING}").replace("](", f"]{_NOTHING}(")
