"""Models by REST: a folder becomes a version, a version becomes a zip.

Invariant: whatever breaks off, the server says where an upload stands, and sending goes on there.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from webapp.client.client import Grove
from webapp.client.types import Model, ModelVersion, Upload

PIECE_BYTES = 4 << 20


def push_model(
    grove: Grove, project: int, name: str, folder: Path, parent: int | None = None
) -> ModelVersion:
    """Upload all files of a folder in Hugging Face layout as the next version of a model, which is
    made if it is not there.

    Raises:
        Refused: the server does not take it; says which file is wrong and why.
        OSError: a file cannot be read.
    """
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    uploads = [_uploaded(grove, project, path).id for path in files]
    model = _model(grove, project, name)
    body = {"uploads": uploads, "parent": parent}
    return grove.ask(ModelVersion, "POST", f"/models/{model.id}/versions", json=body)


def pull_model(grove: Grove, model: int, number: int, file: Path) -> int:
    """Write a version's zip; the bytes written. The file appears whole or not at all."""
    draft = file.with_name(f"{file.name}.draft")
    try:
        with draft.open("wb") as target:
            for block in grove.blocks(f"/models/{model}/versions/{number}/archive"):
                target.write(block)
        written = draft.stat().st_size
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    return written


def _model(grove: Grove, project: int, name: str) -> Model:
    found = grove.models(project=project, name=name)
    known = next((one for one in found if one.name == name), None)
    body = {"project": project, "name": name}
    return known or grove.ask(Model, "POST", "/models", json=body)


def _uploaded(grove: Grove, project: int, path: Path) -> Upload:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = path.stat().st_size
        body = {"project": project, "kind": "model", "name": path.name, "size": size}
        upload = grove.ask(Upload, "POST", "/uploads", json={**body, "sha256": digest})
        while upload.offset < upload.size:
            file.seek(upload.offset)
            headers = {
                "Content-Type": "application/octet-stream",
                "Upload-Offset": str(upload.offset),
            }
            piece = file.read(PIECE_BYTES)
            upload = grove.ask(
                Upload, "PATCH", f"/uploads/{upload.id}", content=piece, headers=headers
            )
    return grove.ask(Upload, "POST", f"/uploads/{upload.id}/finish")
