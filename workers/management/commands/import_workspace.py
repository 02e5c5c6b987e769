"""`manage.py import_workspace`, `grove import-workspace`: a workspace's export into this site."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from webapp.accounts.models import User
from webapp.disk import FULL, is_full
from webapp.errors import Refused
from webapp.offboarding.imports.services import import_workspace
from webapp.offboarding.models import WorkspaceImport
from webapp.projects.models import Role, Workspace
from workers.local.errors import StartError
from workers.local.reached import database_reached


class Command(BaseCommand):
    help = "Import the zip of a workspace, whole or not at all, while everything goes on."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="as a workspace's page made it")
        parser.add_argument(
            "--user", required=True, help="account in whose name it is imported, the owner"
        )
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--into", metavar="SLUG", help="workspace of that account")
        where.add_argument(
            "--name", default="", help="of the new workspace (default: as it was called)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"].absolute()
        try:
            with database_reached():
                user = _account(options["user"])
                into = _workspace(options["into"], user) if options["into"] else None
                made = import_workspace(
                    path, user, into, options["name"], known_people=True, report=self.stdout.write
                )
                self.stdout.write(_summary(made))
        except Refused as error:
            raise SystemExit(f"{path} was not imported. {error}") from None
        except StartError as error:
            raise SystemExit(str(error)) from None
        except OSError as error:
            reason = FULL if is_full(error) else str(error)
            raise SystemExit(f"{path} was not imported. {reason}") from None


def _account(name: str) -> User:
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise SystemExit(f"--user {name}: there is no such account; name one that is active.")
    return user


def _workspace(slug: str, user: User) -> Workspace:
    owned = user.memberships.filter(role=Role.OWNER, workspace__slug=slug)
    membership = owned.select_related("workspace").first()
    if membership is None:
        raise SystemExit(
            f"--into {slug}: {user} owns no workspace of this slug; it is a part of the "
            "workspace's address."
        )
    return membership.workspace


def _summary(made: WorkspaceImport) -> str:
    counted = ", ".join(f"{len(ids)} {kind}s" for kind, ids in made.ids.items())
    return f"Imported into {made.workspace} (/workspaces/{made.workspace.slug}/): {counted}."
