"""Requests of imports: of an uploaded GGUF file, or of a pretrained model of the catalogue.

Invariant: a request that is refused changes nothing, except that a file that is no GGUF file is
discarded with its upload, as any invalid file of a model is.
"""

from __future__ import annotations

import struct

from django.db import transaction

from engine.config import git_lfs
from engine.config.pretrained import PretrainedModel, pretrained_model
from webapp.accounts.models import User
from webapp.artifacts.models import Artifact, Upload
from webapp.artifacts.selectors import room_of
from webapp.artifacts.services import discard, discard_with_artifact
from webapp.artifacts.store import open_artifact
from webapp.model_names import is_gguf
from webapp.projects.models import Project
from webapp.registry.errors import RegistryRefused
from webapp.registry.model_files.imports import artifact_of, refuse_model_name
from webapp.registry.model_files.safetensors import WeightsError
from webapp.registry.model_imports.catalogue import usable_catalogue
from webapp.registry.models import ImportKind, ModelImport
from webapp.rest.problem_details import Invalid

MOST_OPEN = 10
"""Imports of one project that are queued or running."""
VERSIONS = (2, 3)
"""Versions of the GGUF format that are read (github.com/ggml-org/ggml, "GGUF")."""
_BYTES_EACH = 2
"""Bytes of a parameter once it is converted: 16 bits."""
_HEADER = struct.Struct("<4sIQQ")
_AGAIN = "upload a .gguf file as its source publishes it"


def request_gguf(project: Project, name: str, upload: Upload, user: User) -> ModelImport:
    """Queues the import of a finished upload, which it consumes, as the next version of the model
    `name`.

    Raises:
        RegistryRefused: the name is invalid, the upload is not a finished file of this project,
            there is no room for the result, or too many imports are open.
        WeightsError: its first bytes are not those of a GGUF file; then it is deleted.
    """
    refuse_model_name(name)
    artifact = artifact_of(upload, project)
    if not is_gguf(upload.name):
        raise RegistryRefused(
            f"{upload} is not named as a GGUF file (.gguf): give the files of the Hugging Face "
            "layout to POST /api/v1/models."
        )
    try:
        _refuse_header(upload.name, artifact)
    except WeightsError:
        discard_with_artifact(upload)
        raise
    with transaction.atomic():
        _refuse_more(project)
        if not Upload.objects.select_for_update().filter(pk=upload.pk).exists():
            raise RegistryRefused(f"{upload} has been used by now; upload it again.")
        _refuse_room(project, upload.size, "the result takes at least as much as the file")
        one = ModelImport.objects.create(
            project=project, kind=ImportKind.GGUF, name=name, file=upload.name,
            artifact=artifact, created_by=user,
        )  # fmt: skip
    discard(upload)
    return one


def request_package(
    project: Project, package: str, user: User, *, name: str = "", accept_licence: bool = False
) -> ModelImport:
    """Queues the import of a pretrained model as the next version of the model `name` (default: the
    short name of the catalogue); returns the open import of the same model under that name if there
    is one.

    Raises:
        Invalid: the catalogue has no such model, or its licence must be accepted.
        RegistryRefused: as `request_gguf`.
    """
    entry = _entry(package)
    name = name or entry.name
    refuse_model_name(name)
    if entry.accept_licence and not accept_licence:
        reason = f"accept its licence, {entry.licence} ({entry.licence_url}), to add {entry.title}"
        raise Invalid("accept_licence", accept_licence, reason, 409)
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        same = {"project": project, "package": entry.name, "name": name}
        existing = ModelImport.objects.filter(**same, finished=None).first()
        if existing is not None:
            return existing
        _refuse_more(project)
        _refuse_room(project, _BYTES_EACH * entry.parameters, f"{entry.title}, converted")
        return ModelImport.objects.create(**same, kind=ImportKind.PACKAGE, created_by=user)


def _entry(package: str) -> PretrainedModel:
    try:
        with usable_catalogue():
            return pretrained_model(package)
    except ValueError as error:
        raise Invalid("package", package, str(error), 404) from None


def _refuse_header(file: str, artifact: Artifact) -> None:
    """Raises `WeightsError` unless the file starts as a GGUF file of a version that is read."""
    with open_artifact(artifact.pk) as content:
        start = content.read(_HEADER.size)
        pointer = git_lfs.is_pointer(start + content.read(git_lfs.START_BYTES))
    if pointer:
        raise WeightsError(file, f"is {git_lfs.WHAT}", git_lfs.REMEDY)
    if start[:4] != b"GGUF":
        raise WeightsError(file, "is no GGUF file: it does not start with GGUF", _AGAIN)
    if len(start) < _HEADER.size:
        raise WeightsError(file, f"ends after {len(start)} bytes, in its header", _AGAIN)
    _, version, tensors, _ = _HEADER.unpack(start)
    if version not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        what = f"is of version {version} of GGUF; versions {known} are read, little-endian"
        raise WeightsError(file, what, "convert it to version 3")
    if tensors == 0:
        raise WeightsError(file, "holds no tensor", _AGAIN)


def _refuse_more(project: Project) -> None:
    """Raises `RegistryRefused` at `MOST_OPEN`; locks the project."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if ModelImport.objects.filter(project=project, finished=None).count() >= MOST_OPEN:
        raise RegistryRefused(
            f"{MOST_OPEN} imports of {project} are pending: wait until one is done, or cancel one."
        )


def _refuse_room(project: Project, size: int, what: str) -> None:
    room = room_of(project)
    if size > room:
        raise RegistryRefused(
            f"{project} has room for {max(0, room)} bytes more, but {what}: {size} bytes. Delete "
            "what it does not need, or have the server's operator raise GROVE_QUOTA_MIB."
        )
