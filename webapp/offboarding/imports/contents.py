"""Contents of an export: problems of datasets and files of models, checked and stored.

Invariants: each file is checked as an upload of its kind is, in a process with limits; all of it
happens before the transaction that creates rows, so that no lock is held meanwhile. What a refused
import has stored is unreferenced, and collected like any other such artifact.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from engine.problems.formats import OWN
from webapp.artifacts import store
from webapp.artifacts.models import Artifact
from webapp.datasets.errors import DatasetRefused
from webapp.datasets.parsing.parse import Reading, Source, read_now
from webapp.offboarding.errors import ImportRefused
from webapp.offboarding.imports.archive import Archive
from webapp.offboarding.imports.records import DatasetVersion, File, ModelVersion
from webapp.registry.model_files.checking import checked_now
from webapp.registry.model_files.layout import Layout, digest_of
from webapp.registry.model_files.safetensors import WeightsError


@dataclass(frozen=True, slots=True)
class StoredProblems:
    """Problems of a dataset version; `reading` lasts as long as the import."""

    artifact: Artifact
    reading: Reading


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """Files of a model version, by name."""

    artifacts: dict[str, Artifact]
    layout: Layout


@dataclass(slots=True)
class Contents:
    """What is stored, by the version's id in the export; a version whose files were lost before the
    export has none."""

    problems: dict[int, StoredProblems] = field(default_factory=dict)
    files: dict[int, StoredFiles] = field(default_factory=dict)


def store_contents(archive: Archive, stack: ExitStack) -> Contents:
    """Stores all contents of an export. `stack` holds temporary files.

    Raises:
        ImportRefused: one is not what its row says, or no dataset or model that may be used here.
        OSError: one cannot be written.
    """
    contents = Contents()
    refuse_quota(archive)
    for version in archive.rows("datasets.jsonl", DatasetVersion):
        if version.artifact_id and f"datasets/{version.id}/problems" in archive:
            contents.problems[version.id] = _problems(archive, version, stack)
    known: dict[frozenset[tuple[str, str]], StoredFiles] = {}
    listed: dict[int, list[File]] = {}
    for file in archive.rows("files.jsonl", File):
        listed.setdefault(file.version_id, []).append(file)
    for row in archive.rows("models.jsonl", ModelVersion):
        files = listed.get(row.id, [])
        if files and all(f"models/{row.id}/{one.name}" in archive for one in files):
            key = frozenset((one.name, one.sha256) for one in files)
            if key not in known:
                known[key] = _files(archive, row, files)
            contents.files[row.id] = known[key]
    return contents


def _problems(archive: Archive, version: DatasetVersion, stack: ExitStack) -> StoredProblems:
    name = f"datasets/{version.id}/problems"
    path = _staged(archive.blocks(name), stack)
    source = Source(path, f"{version.dataset__name} v{version.number}")
    try:
        reading = stack.enter_context(read_now([source], OWN))
    except DatasetRefused as error:
        raise ImportRefused(name, str(error), error.status) from None
    path.unlink()
    if reading.hash != version.content_hash:
        raise ImportRefused(
            name, f"has the problems {reading.hash}, but its row says {version.content_hash}."
        )
    return StoredProblems(store.put_file(reading.problems), reading)


def _files(archive: Archive, version: ModelVersion, files: list[File]) -> StoredFiles:
    folder = f"models/{version.id}"
    artifacts = {}
    for one in files:
        artifacts[one.name] = store.put(archive.blocks(f"{folder}/{one.name}"))
        if artifacts[one.name].pk != one.sha256:
            reason = f"has the SHA-256 {artifacts[one.name].pk}, but files.jsonl {one.sha256}."
            raise ImportRefused(f"{folder}/{one.name}", reason)
    sha256 = {name: artifact.pk for name, artifact in artifacts.items()}
    try:
        layout = checked_now({name: store.local_path(digest) for name, digest in sha256.items()})
    except WeightsError as error:
        raise ImportRefused(folder, f"is no model that can be used here: {error}") from None
    if digest_of(sha256) != version.sha256:
        raise ImportRefused(folder, f"has other weights than its row says ({version.sha256}).")
    return StoredFiles(artifacts, layout)


def refuse_quota(archive: Archive) -> None:
    """Raises `ImportRefused` if a project would hold more files than one here may."""
    project_of = {
        f"datasets/{one.id}": one.dataset__project
        for one in archive.rows("datasets.jsonl", DatasetVersion)
    } | {
        f"models/{one.id}": one.model__project for one in archive.rows("models.jsonl", ModelVersion)
    }
    sizes: dict[int, int] = {}
    for folder, project in project_of.items():
        total = sum(map(archive.size, archive.below(folder)))
        sizes[project] = sizes.get(project, 0) + total
    largest = max(sizes.values(), default=0)
    if largest > settings.ARTIFACT_QUOTA_BYTES:
        raise ImportRefused(
            "the file",
            f"has a project with {largest} bytes of datasets and models, and a project here may "
            f"have {settings.ARTIFACT_QUOTA_BYTES}: have the server's operator raise "
            "GROVE_QUOTA_MIB.",
            413,
        )


def _staged(blocks: Iterator[bytes], stack: ExitStack) -> Path:
    settings.UPLOADS_DIR.mkdir(parents=True, exist_ok=True)
    folder = stack.enter_context(
        tempfile.TemporaryDirectory(prefix="importing-", dir=settings.UPLOADS_DIR)
    )
    path = Path(folder) / "problems.jsonl"
    with path.open("wb") as file:
        for block in blocks:
            file.write(block)
    return path
