"""Command `manage.py sign_in_link [USER]`: a new one-time link, if the last is used or expired."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError

from webapp.accounts.models import User
from webapp.accounts.services import create_sign_in_link
from webapp.config.addresses import site_address
from webapp.config.installation import UP
from webapp.projects.services import DEMO


class Command(BaseCommand):
    help = "Print a new sign-in link for a user; it works once, within ten minutes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", nargs="?", default=DEMO, help="default: %(default)s")

    def handle(self, *args: Any, user: str, **options: Any) -> None:
        try:
            path = create_sign_in_link(_find(user))
        except OperationalError as error:
            reason = str(error).strip().splitlines()[0]
            raise CommandError(
                f"The database does not answer ({reason}). Start Grove first: {UP}"
            ) from None
        self.stdout.write(f"{_site()}{path}")


def _site() -> str:
    """Where this Grove answers; with GROVE_PORT=0 its supervisor has written that to the lock."""
    if settings.GROVE_PORT:
        return site_address(settings.GROVE_PORT)
    try:
        return (settings.GROVE_VAR / "lock").read_text()
    except OSError:
        raise CommandError(f"GROVE_PORT is 0 and Grove is not running. Start it: {UP}") from None


def _find(name: str) -> User:
    if user := User.objects.filter(username=name, is_active=True).first():
        return user
    users = User.objects.filter(is_active=True).order_by("username")[:20]
    names = ", ".join(one.username for one in users) or f"none yet; the first `{UP}` creates one"
    raise CommandError(f"There is no active account {name!r}. Accounts: {names}.")
