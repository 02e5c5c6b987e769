"""Resumable upload of a file in pieces, from the server's offset.

Invariant: the server's offset is the only cursor; a repeated upload of the same file to the same
project continues the unfinished one, because the server identifies it by its digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from webapp.client.types import Refused, Upload, UploadList

PIECE_BYTES = 4 << 20
FINISH_SECONDS = 600.0
"""Deadline for the server to hash the uploaded file."""

Ask = Callable[..., Any]


def upload(ask: Ask, file: Path, project: int, kind: str) -> Upload:
    """Uploads a file and returns the finished upload; `ask` is `Grove.ask`."""
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
        size = content.seek(0, 2)
        body = {"project": project, "kind": kind, "name": file.name, "size": size, "sha256": digest}
        begun = _begun_before(ask, body) or ask(Upload, "POST", "/uploads", json=body)
        while begun.offset < begun.size:
            content.seek(begun.offset)
            begun = _sent(ask, begun, content.read(PIECE_BYTES))
    return ask(Upload, "POST", f"/uploads/{begun.id}/finish", timeout=FINISH_SECONDS)


def _begun_before(ask: Ask, body: dict[str, Any]) -> Upload | None:
    """Returns the unfinished upload of the same file, if any."""
    query = {"project": body["project"], "kind": body["kind"], "announced": body["sha256"]}
    told = ask(UploadList, "GET", "/uploads", params=query)
    return next((one for one in told.uploads if one.name == body["name"]), None)


def _sent(ask: Ask, begun: Upload, piece: bytes) -> Upload:
    headers = {"Upload-Offset": str(begun.offset), "Content-Type": "application/octet-stream"}
    try:
        return ask(Upload, "PATCH", f"/uploads/{begun.id}", content=piece, headers=headers)
    except Refused as error:
        if error.problem.status != 409:
            raise
        found = ask(Upload, "GET", f"/uploads/{begun.id}")
        if found.offset == begun.offset:
            raise
        return found
