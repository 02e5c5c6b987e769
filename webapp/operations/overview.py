"""The installation on one page: each part read by itself, so that one that fails hides no other."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import Error, connection, transaction

from webapp.accounts.models import User
from webapp.operations import active_runs, processes, queries
from webapp.operations.figures import figures
from webapp.operations.readiness import readiness
from webapp.projects.models import Project

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Storage:
    """Sizes are bytes."""

    disk_free: int
    """Of the disk of GROVE_VAR."""
    disk_size: int
    database: int
    artifacts: int
    """Number of stored contents."""
    artifact_bytes: int
    uploading_bytes: int
    quota: int
    """Of each project."""
    fullest: list[tuple[int, str, int]]
    """Id, name and bytes of the fullest projects; the name is empty where the reader sees none."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the overview: what was read, or why it could not be."""

    value: Any = None
    error: str = ""


def read(user: User) -> dict[str, Part]:
    """Reads every part, by name."""
    parts: dict[str, Callable[[], Any]] = {
        "checks": readiness.answer,
        "figures": figures,
        "processes": processes.read_processes,
        "runs": lambda: active_runs.read_runs(user),
        "storage": lambda: read_storage(user),
        "running": queries.running,
        "counted": queries.counted,
    }
    return {name: _guarded(name, part) for name, part in parts.items()}


def read_storage(user: User) -> Storage:
    """Reads disk, database and artifacts."""
    disk, now = shutil.disk_usage(settings.GROVE_VAR), figures()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        (database,) = cursor.fetchone()
    visible = Project.objects.visible_to(user).filter(pk__in=now.project_bytes)
    names = {project.pk: str(project) for project in visible}
    return Storage(
        disk_free=disk.free,
        disk_size=disk.total,
        database=database,
        artifacts=now.artifacts,
        artifact_bytes=now.artifact_bytes,
        uploading_bytes=now.uploading_bytes,
        quota=now.quota_bytes,
        fullest=[(pk, names.get(pk, ""), size) for pk, size in now.project_bytes.items()],
    )


def _guarded(name: str, part: Callable[[], Any]) -> Part:
    try:
        with transaction.atomic():
            return Part(part())
    except (Error, OSError) as error:
        logger.warning("the operations page lacks %s: %s", name, error)
        return Part(error=f"{type(error).__name__}: {error}"[:300])
