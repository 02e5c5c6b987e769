"""Registration of what a worker converted, as the version of its import.

Invariants: the files pass the checks of every imported model before a version exists; a failure
leaves neither rows nor bytes behind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.config.errors import printable
from engine.config.pretrained import ORIGIN, pretrained_model
from webapp.artifacts import store
from webapp.artifacts.models import Artifact, Charge
from webapp.artifacts.selectors import room_of, unreferenced
from webapp.registry.errors import RegistryRefused
from webapp.registry.model_files.checking import checked
from webapp.registry.model_files.imports import add_imported, remove_unreferenced
from webapp.registry.model_files.layout import Layout, files_of
from webapp.registry.model_imports.states import complete
from webapp.registry.models import ImportKind, Model, ModelImport, ModelVersion

_LINEAGE = "lineage.json"
"""Record of a conversion, which stays with the files; `ORIGIN` is that of a download."""
_MOST_BYTES = 1 << 20
_MOST_CHARS = 300


def check(one: ModelImport, folder: Path) -> Layout:
    """Checks a converted model in a process with limits.

    Raises:
        WeightsError: a fault, with its file. Queued: it is not the import's turn.
    """
    paths = {file.name: folder / file.name for file in files_of(folder)}
    return checked(paths, one.project, one.created_by, ["import", one.pk])


def take_record(folder: Path) -> dict[str, Any]:
    """Returns the engine's record of the conversion; removes that of the download, which is no file
    of the layout. Raises `ValueError` for a record that is no JSON."""
    (folder / ORIGIN).unlink(missing_ok=True)
    path = folder / _LINEAGE
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        return {}
    recorded = json.loads(path.read_bytes())
    return recorded if isinstance(recorded, dict) else {}


def register(
    one: ModelImport, folder: Path, layout: Layout, recorded: Mapping[str, Any]
) -> ModelVersion:
    """Moves the files of a checked folder, which lies below `settings.UPLOADS_DIR`, into the store
    and completes the import with their version.

    Raises:
        RegistryRefused: the project has no room for them. ImportLost: as `states.complete`.
        OSError: a file cannot be stored.
    """
    origin = origin_of(one, recorded)
    artifacts: dict[str, Artifact] = {}
    try:
        for file in files_of(folder):
            artifacts[file.name] = store.put_file(folder / file.name)
        return complete(one, lambda: _version(one, layout, artifacts, origin))
    except BaseException:
        remove_unreferenced(list(artifacts.values()))
        raise


def origin_of(one: ModelImport, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the origin of the version, for its metadata: what was imported, by its digest, how it
    was quantised, and its licence. `recorded`: the engine's record."""
    quantisation = _quantisation(recorded)
    if one.kind == ImportKind.GGUF:
        origin = {"kind": one.kind, "file": one.file, "sha256": one.artifact_id, **quantisation}
        return origin | _stated_licence(recorded)
    entry = pretrained_model(one.package)
    origin = {
        "kind": one.kind,
        "package": entry.package,
        "version": entry.version,
        "sha256": entry.digest,
        "title": entry.title,
        "licence": entry.licence,
        "licence_url": entry.licence_url,
        **quantisation,
    }
    if entry.accept_licence and one.created_by is not None:
        origin["licence_accepted_by"] = one.created_by.username
    return origin


def _quantisation(recorded: Mapping[str, Any]) -> dict[str, str]:
    """Returns the formats of the file's tensors, the most frequent first."""
    tensors = recorded.get("tensors")
    if not isinstance(tensors, dict) or not tensors:
        return {}
    counts = {name: number for name, number in tensors.items() if isinstance(number, int)}
    kinds = sorted(counts, key=lambda name: -counts[name])
    return {"quantisation": printable(", ".join(kinds))[:_MOST_CHARS]}


def _stated_licence(recorded: Mapping[str, Any]) -> dict[str, str]:
    stated = recorded.get("stated")
    licence = stated.get("licence") if isinstance(stated, dict) else None
    return {"licence": printable(str(licence))[:_MOST_CHARS]} if licence else {}


def _version(
    one: ModelImport, layout: Layout, artifacts: dict[str, Artifact], origin: dict[str, Any]
) -> ModelVersion:
    for artifact in artifacts.values():
        Charge.objects.get_or_create(project=one.project, artifact=artifact)
    _refuse_excess(one)
    model, _ = Model.objects.get_or_create(
        project=one.project, name=one.name, defaults={"created_by": one.created_by}
    )
    return add_imported(model, layout, artifacts, None, one.created_by, origin)


def _refuse_excess(one: ModelImport) -> None:
    """Raises `RegistryRefused` if the project, with the converted files, holds more than it may.
    The uploaded file does not count: it is removed with the end of the import."""
    room = room_of(one.project)
    if uploaded := unreferenced().filter(pk=one.artifact_id).first():
        room += uploaded.size
    if room < 0:
        raise RegistryRefused(
            f"The converted model takes {-room} bytes more than {one.project} has room for. Delete "
            "what it does not need, or have the server's operator raise GROVE_QUOTA_MIB, then "
            "retry."
        )
