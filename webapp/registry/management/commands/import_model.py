"""`manage.py import_model FOLDER --project SLUG`: import of a local folder as a version.

Only the server's operator can name a folder; people and programs upload.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.projects.models import Project
from webapp.registry.errors import RegistryRefused
from webapp.registry.model_files.imports import import_folder
from webapp.registry.model_files.safetensors import WeightsError


class Command(BaseCommand):
    help = "Import a model in Hugging Face layout from a local folder."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument(
            "--project", required=True, metavar="WORKSPACE/PROJECT", help="slugs, as in demo/demo"
        )
        parser.add_argument("--name", help="of the model (default: the folder's)")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace, _, slug = options["project"].partition("/")
        project = Project.objects.filter(workspace__slug=workspace, slug=slug).first()
        if project is None:
            existing = ", ".join(
                f"{one.workspace.slug}/{one.slug}"
                for one in Project.objects.select_related("workspace").order_by("pk")[:20]
            )
            raise CommandError(
                f"--project = {options['project']}: no such project; there are {existing}"
            )
        folder = options["folder"]
        try:
            name = options["name"] or folder.resolve().name
            version = import_folder(project, name, folder, self._left_out)
        except (WeightsError, RegistryRefused, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{version} in {project}: {version.sha256}")

    def _left_out(self, name: str, why: str) -> None:
        self.stderr.write(f"left out: {ascii(name)[1:-1]}: {why}")
