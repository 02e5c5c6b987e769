"""Origin of an imported model, as its `lineage.json`."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from engine.policy.models.gguf.file import GgufFile

_READ_BYTES = 1 << 22
_STATED = {
    "name": "general.name",
    "licence": "general.license",
    "licence_link": "general.license.link",
    "organization": "general.organization",
    "source": "general.source.url",
    "repository": "general.repo_url",
    "base_model": "general.base_model.0.repo_url",
}
"""Entries that say where a model came from, by their name here."""
_MOST_CHARACTERS = 1000


def lineage(file: GgufFile, template: str, progress: Callable[[int], None]) -> dict[str, Any]:
    """Returns the origin: name, size, SHA-256 and quantisation of the file, where its chat template
    came from, and what its metadata say of the model. `progress` is called with bytes read."""
    kinds = Counter(info.kind.name for info in file.tensors.values())
    stated = {
        name: value[:_MOST_CHARACTERS]
        for name, key in _STATED.items()
        if isinstance(value := file.metadata.values.get(key), str) and value
    }
    return {
        "format": "gguf",
        "file": file.path.name,
        "bytes": file.path.stat().st_size,
        "sha256": _sha256(file, progress),
        "architecture": file.metadata.text("general.architecture"),
        "tensors": dict(sorted(kinds.items())),
        "chat_template": template,
        "stated": stated,
    }


def _sha256(file: GgufFile, progress: Callable[[int], None]) -> str:
    digest = hashlib.sha256()
    file.stream.seek(0)
    while data := file.stream.read(_READ_BYTES):
        digest.update(data)
        progress(len(data))
    return digest.hexdigest()
