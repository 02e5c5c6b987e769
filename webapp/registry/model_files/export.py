"""Streaming export of a version as a zip in the Hugging Face layout.

Invariants: members are stored uncompressed (weights do not compress), and at most one block is in
memory. A file that differs from what was registered aborts the archive before its directory is
written: no reader takes the partial archive for a complete one.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from webapp.artifacts.store import open_artifact
from webapp.registry.errors import RegistryRefused
from webapp.registry.models import ModelVersion, VersionFile
from webapp.registry.versions.cards import card

_BLOCK = 1 << 20
_CARD = "README.md"
_DATE = (1980, 1, 1, 0, 0, 0)


def archive_name(version: ModelVersion) -> str:
    return f"{version.model.name}-v{version.number}.zip"


def archive(version: ModelVersion) -> Iterator[bytes]:
    """Yields the zip, block by block.

    Raises:
        RegistryRefused: before the first block, if a file is missing.
    """
    listed = list(version.files.all())
    if not listed:
        raise RegistryRefused(
            f"{version} was registered before files were listed: ask the server's operator "
            "to run manage.py list_model_files, then retry."
        )
    files = [file for file in listed if file.name != _CARD]
    for file in files:
        _open(version, file).close()
    return _blocks(version, files, card(version).encode())


class _Outlet:
    """Output of zipfile that keeps only the bytes not sent yet."""

    def __init__(self) -> None:
        self.waiting: list[bytes] = []

    def write(self, data: bytes) -> int:
        self.waiting.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        data, self.waiting = b"".join(self.waiting), []
        return data


def _blocks(version: ModelVersion, files: list[VersionFile], text: bytes) -> Iterator[bytes]:
    outlet = _Outlet()
    with zipfile.ZipFile(outlet, "w", zipfile.ZIP_STORED) as bundle:  # type: ignore[arg-type]
        bundle.writestr(zipfile.ZipInfo(_CARD, _DATE), text)
        for file in files:
            entry = zipfile.ZipInfo(file.name, _DATE)
            entry.file_size = file.size
            with (
                bundle.open(entry, "w", force_zip64=file.size >= 2**31) as member,
                _open(version, file) as content,
            ):
                for block in _checked(content, file):
                    member.write(block)
                    yield outlet.take()
        yield outlet.take()
    yield outlet.take()


def _checked(content: IO[bytes], file: VersionFile) -> Iterator[bytes]:
    digest = hashlib.sha256()
    while block := content.read(_BLOCK):
        digest.update(block)
        yield block
    if digest.hexdigest() != file.sha256:
        raise OSError(f"{file.name} is no longer what was registered")


def _open(version: ModelVersion, file: VersionFile) -> IO[bytes]:
    try:
        if file.artifact_id:
            return open_artifact(file.artifact_id)
        return (Path(version.path) / file.name).open("rb")
    except OSError:
        raise RegistryRefused(
            f"{file.name} of {version} no longer exists: its run's directory was removed."
        ) from None
