"""Upload and download of models over REST: a folder or GGUF file as a version, a version as a zip.

Waits: for the server to convert a GGUF file, as long as it does (it has a deadline of its own).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import httpx

from webapp.client.client import RETRIES, Grove
from webapp.client.types import Model, ModelImport, ModelVersion
from webapp.client.whole_files import whole_file

POLL_SECONDS = 1.0
GGUF = ".gguf"


class ImportFailed(Exception):
    """Raised if the server's import ended without a version; the message is its first cause."""


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


def push_gguf(
    grove: Grove,
    project: int,
    name: str,
    file: Path,
    on_progress: Callable[[ModelImport], None] = lambda _: None,
) -> ModelVersion:
    """Uploads a GGUF file, waits until a worker of the server has converted it, and returns the
    next version of the model `name`, which is created if missing. `on_progress` gets every state.

    Raises:
        Refused: the server does not accept it. ImportFailed: it cannot be converted.
        OSError: it cannot be read. ValueError: it is no GGUF file.
    """
    with file.open("rb") as content:
        if content.read(4) != b"GGUF":
            raise ValueError(f"{file} is no GGUF file: it does not start with GGUF")
    upload = grove.upload(file, project, "model")
    body = {"name": name, "upload": upload.id}
    one = grove.ask(ModelImport, "POST", f"/projects/{project}/model-imports", json=body)
    on_progress(one)
    failures = 0
    while not one.is_over:
        time.sleep(POLL_SECONDS)
        try:
            one = grove.ask(ModelImport, "GET", f"/models/imports/{one.id}")
        except httpx.TransportError:  # the import goes on without us
            failures += 1
            if failures > RETRIES:
                raise
            continue
        failures = 0
        on_progress(one)
    if one.model is None:
        raise ImportFailed(f"{file.name}: {one.error or 'its version was deleted'}")
    return grove.ask(ModelVersion, "GET", f"/models/{one.model}/versions/{one.number}")


def pull_model(grove: Grove, model: int, number: int, file: Path) -> int:
    """Writes a version's zip and returns its size in bytes. The file appears complete or not at
    all."""
    with whole_file(file) as target:
        blocks = grove.blocks(f"/models/{model}/versions/{number}/archive")
        return sum(target.write(block) for block in blocks)
