"""Upload and download of models over REST: a folder as a version, a version as a zip."""

from __future__ import annotations

from pathlib import Path

from webapp.client.client import Grove
from webapp.client.types import Model, ModelVersion


def push_model(
    grove: Grove, project: int, name: str, folder: Path, parent: int | None = None
) -> ModelVersion:
    """Uploads all files of a folder in Hugging Face layout as the next version of a model, which is
    created if missing.

    Raises:
        Refused: the server does not accept it; names the invalid file and the reason.
        OSError: a file cannot be read. ValueError: `parent` is given and the model does not exist.
    """
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    existing = next(
        (one for one in grove.models(project=project, name=name) if one.name == name), None
    )
    if existing is None and parent is not None:
        raise ValueError(f"parent {parent}: project {project} has no model {name}, leave it out")
    uploads = [grove.upload(path, project, "model").id for path in files]
    if existing is None:
        body = {"project": project, "name": name, "uploads": uploads}
        return grove.ask(Model, "POST", "/models", json=body).versions[0]
    body = {"uploads": uploads, "parent": parent}
    return grove.ask(ModelVersion, "POST", f"/models/{existing.id}/versions", json=body)


def pull_model(grove: Grove, model: int, number: int, file: Path) -> int:
    """Writes a version's zip and returns its size in bytes. The file appears complete or not at
    all."""
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
