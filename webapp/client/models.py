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
from webapp.model_names import fault_of_names, is_gguf, is_weights, part_of_folder

POLL_SECONDS = 1.0
GGUF = ".gguf"
_POINTER = b"version https://git-lfs"


class ImportFailed(Exception):
    """Raised if the server's import ended without a version; the message is its first cause."""


def push_model(
    grove: Grove,
    project: int,
    name: str,
    folder: Path,
    parent: int | None = None,
    on_left_out: Callable[[str, str], None] = lambda _, __: None,
) -> ModelVersion:
    """Uploads the files of a folder in Hugging Face layout as the next version of a model, which is
    created if missing. `on_left_out` receives the name of each file that is no part of a model, and
    why.

    Raises:
        Refused: the server does not accept it; names the invalid file and the reason.
        OSError: a file cannot be read. ValueError: the files are no complete model, or `parent` is
            given and the model does not exist; nothing was sent.
    """
    files, left_out = files_to_push(folder)
    for foreign, why in left_out.items():
        on_left_out(foreign, why)
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


def files_to_push(folder: Path) -> tuple[list[Path], dict[str, str]]:
    """Returns the files of a folder that are a model's, and why each of the others is left out, by
    name.

    Raises:
        OSError: a file cannot be read. ValueError: they are no complete model; names the file.
    """
    inside = sorted(folder.iterdir())
    names, left_out = part_of_folder([path.name for path in inside if path.is_file()])
    left_out |= {path.name: "is no file" for path in inside if not path.is_file()}
    if gguf := next((name for name in names if is_gguf(name)), None):
        raise ValueError(f"{folder / gguf}: give the GGUF file itself, not its folder")
    if fault := fault_of_names(names):
        raise ValueError(str(fault))
    for name in names:
        with (folder / name).open("rb") as content:
            start = content.read(len(_POINTER))
        _refuse_pointer(folder / name, start)
        if is_weights(name) and start[8:9] != b"{":
            raise ValueError(
                f"{name}: is no safetensors file, whose header begins with an object; save the "
                "model again with save_pretrained(..., safe_serialization=True)"
            )
    return [folder / name for name in names], left_out


def _refuse_pointer(file: Path, start: bytes) -> None:
    if start.startswith(_POINTER):
        raise ValueError(
            f"{file.name}: is a pointer of git-lfs, not the file itself; fetch the file with "
            "`git lfs pull`, or download it, and try again"
        )


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
        start = content.read(len(_POINTER))
        _refuse_pointer(file, start)
        if not start.startswith(b"GGUF"):
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
