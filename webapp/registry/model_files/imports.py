"""Import of models: uploaded by people, or read from a folder that the operator names.

Invariants: every file is checked before a version exists; a refused import leaves neither rows nor
bytes behind; the same files are one version of a model, however often they are imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from django.db import transaction

from webapp.accounts.models import User
from webapp.artifacts import store
from webapp.artifacts.models import Artifact, Upload
from webapp.artifacts.services import discard
from webapp.model_names import is_gguf
from webapp.projects.models import Project
from webapp.registry.errors import RegistryRefused
from webapp.registry.model_files import folders
from webapp.registry.model_files.checking import checked
from webapp.registry.model_files.layout import (
    Layout,
    ModelFile,
    check_model,
    digest_of,
    model_files_of,
    refuse_names,
)
from webapp.registry.model_files.safetensors import WeightsError
from webapp.registry.models import Model, ModelVersion, VersionFile
from webapp.registry.services import add_version, lock

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_BLOCK = 1 << 20


def refuse_model_name(name: str) -> None:
    """Raises `RegistryRefused` unless `name` is a valid name of a model."""
    if not re.fullmatch(NAME, name):
        raise RegistryRefused(
            f"{name[:60]!r} cannot be the name of a model: give letters, digits, dots, - and _."
        )


def create_model(project: Project, name: str, user: User | None) -> Model:
    """Creates a model without versions.

    Raises:
        RegistryRefused: the name is invalid or taken.
    """
    refuse_model_name(name)
    model, is_new = Model.objects.get_or_create(
        project=project, name=name, defaults={"created_by": user}
    )
    if not is_new:
        raise RegistryRefused(f"There is a model {name} in {project} already.")
    return model


def import_uploads(
    model: Model, uploads: Sequence[Upload], parent: ModelVersion | None, user: User
) -> ModelVersion:
    """Creates a version of the uploaded files and consumes the uploads.

    Raises:
        RegistryRefused: an upload is not finished, or of another kind or project.
        Queued: it is not its turn; the uploads are kept.
        WeightsError: they are no model; then the uploads and their bytes are deleted.
    """
    return _imported(model.project, lambda: model, uploads, parent, user)


def import_first(project: Project, name: str, uploads: Sequence[Upload], user: User) -> Model:
    """Creates a model with a first version of the uploaded files and consumes the uploads.

    Raises as `create_model` and `import_uploads`; then no model is created.
    """
    refuse_model_name(name)
    make = partial(create_model, project, name, user)
    return _imported(project, make, uploads, None, user).model


def _imported(
    project: Project,
    model_of: Callable[[], Model],
    uploads: Sequence[Upload],
    parent: ModelVersion | None,
    user: User,
) -> ModelVersion:
    artifacts = {upload.name: artifact_of(upload, project) for upload in uploads}
    for upload in uploads:
        _refuse_gguf(upload, project)
    try:
        layout = _checked(uploads, project, user)
        with transaction.atomic():
            version = add_imported(model_of(), layout, artifacts, parent, user)
    except WeightsError:
        for upload in uploads:
            discard(upload)
        remove_unreferenced(list(artifacts.values()))
        raise
    for upload in uploads:
        discard(upload)
    return version


def import_folder(
    project: Project,
    name: str,
    folder: Path,
    on_left_out: Callable[[str, str], None] = lambda _, __: None,
) -> ModelVersion:
    """Creates a version of a local folder that the server's operator names. `on_left_out` receives
    the name of each file that is no part of a model, and why.

    Raises:
        WeightsError, RegistryRefused: it is no model, or the name is invalid; nothing is stored.
    """
    refuse_model_name(name)
    files, left_out = model_files_of(folder)
    for foreign, why in left_out.items():
        on_left_out(foreign, why)
    layout = check_model(files)
    model, _ = Model.objects.get_or_create(project=project, name=name)
    artifacts = {file.name: store.put(_blocks(file)) for file in files}
    return add_imported(model, layout, artifacts, None, None)


@transaction.atomic
def add_imported(
    model: Model,
    layout: Layout,
    artifacts: dict[str, Artifact],
    parent: ModelVersion | None,
    user: User | None,
    origin: Mapping[str, Any] | None = None,
) -> ModelVersion:
    """Creates the version of checked files, by name; returns the existing one of the same files.

    `origin`: where a converted model comes from, for its metadata.
    """
    lock(model.project)
    sha256 = {name: artifact.pk for name, artifact in artifacts.items()}
    path = str(folders.fill(sha256))
    if existing := model.versions.filter(path=path).first():
        return existing
    version = add_version(
        model,
        path=path,
        sha256=digest_of(sha256),
        parameters=layout.parameters,
        parent=parent,
        created_by=user,
        metadata={
            "architecture": layout.architecture,
            **({"origin": dict(origin)} if origin else {}),
            **({"warnings": list(layout.warnings)} if layout.warnings else {}),
        },
    )
    VersionFile.objects.bulk_create(
        VersionFile(version=version, name=name, size=one.size, sha256=one.pk, artifact=one)
        for name, one in artifacts.items()
    )
    return version


def artifact_of(upload: Upload, project: Project) -> Artifact:
    """Returns the content of an upload. Raises `RegistryRefused` unless it is a finished file of a
    model in the project."""
    if upload.kind != Upload.Kind.MODEL or upload.project_id != project.pk:
        raise RegistryRefused(f"{upload} was not uploaded as a file of a model in {project}.")
    if upload.artifact is None:
        raise RegistryRefused(
            f"{upload} is not finished: send the remaining bytes, then finish it."
        )
    return upload.artifact


def _refuse_gguf(upload: Upload, project: Project) -> None:
    if is_gguf(upload.name):
        raise RegistryRefused(
            f"{upload} is a GGUF file, which a worker converts: give it alone to "
            f"POST /api/v1/projects/{project.pk}/model-imports. The upload is kept."
        )


def remove_unreferenced(artifacts: Sequence[Artifact]) -> None:
    """Removes those artifacts that nothing else refers to."""
    for artifact in artifacts:
        store.remove(artifact)


def _checked(uploads: Sequence[Upload], project: Project, user: User) -> Layout:
    names = [upload.name for upload in uploads]
    refuse_names(names)
    paths = {upload.name: store.local_path(upload.artifact_id) for upload in uploads}
    return checked(paths, project, user, sorted(upload.pk for upload in uploads))


def _blocks(file: ModelFile) -> Iterator[bytes]:
    with file.open() as content:
        while block := content.read(_BLOCK):
            yield block
