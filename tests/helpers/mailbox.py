"""A real SMTP server that keeps what it receives, and a site that sends to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from typing import Any

from aiosmtpd.controller import Controller

from tests.helpers.ports import a_port
from webapp.config.environment import read_mail


class Box:
    """Receives mail by SMTP and keeps it: (sender, recipients, message)."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, list[str], Any]] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        read = message_from_bytes(envelope.content, policy=policy.default)
        self.taken.append((envelope.mail_from, envelope.rcpt_tos, read))
        return "250 taken"


@contextmanager
def a_mailbox(settings: Any) -> Iterator[Box]:
    """Sends the site's mail by SMTP, as with GROVE_MAIL_URL, to the box."""
    box, port = Box(), a_port()
    controller = Controller(box, "127.0.0.1", port)
    controller.start()
    try:
        url, sender = f"smtp://127.0.0.1:{port}", "grove@example.org"
        mail = read_mail({"GROVE_MAIL_URL": url, "GROVE_MAIL_FROM": sender})
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = mail.host, mail.port
        settings.EMAIL_USE_TLS, settings.EMAIL_USE_SSL = mail.starttls, mail.tls
        settings.EMAIL_TIMEOUT, settings.DEFAULT_FROM_EMAIL = 10, mail.sender
        settings.MAIL_IS_SENT = True
        yield box
    finally:
        controller.stop()
