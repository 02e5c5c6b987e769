"""`manage.py list_model_files`: listing of the files of versions registered before lists existed,
so that they can be downloaded. Idempotent.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.registry.errors import RegistryRefused
from webapp.registry.models import ModelVersion
from webapp.registry.services import list_files


class Command(BaseCommand):
    help = "List the files of model versions that were registered before files were listed."

    def handle(self, *args: Any, **options: Any) -> None:
        without = ModelVersion.objects.filter(files=None).select_related("model__project")
        refused = 0
        for version in without.order_by("pk"):
            try:
                self.stdout.write(f"{version}: {list_files(version)} files")
            except RegistryRefused as refusal:
                refused += 1
                self.stderr.write(str(refusal))
        if refused:
            raise CommandError(f"{refused} versions could not be listed")
