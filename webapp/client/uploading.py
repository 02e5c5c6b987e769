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

Request = Callable[..., Any]


def upload(request: Request, file: Path, project: int, kind: str) -> Upload:
    """Uploads a file and returns the finished upload; `request` is `Grove.ask`."""
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
        size = content.seek(0, 2)
        body = {"project": project, "kind": kind, "name": file.name, "size": size, "sha256": digest}
        current = _unfinished(request, body) or request(Upload, "POST", "/uploads", json=body)
        while current.offset < current.size:
            content.seek(current.offset)
            current = _append(request, current, content.read(PIECE_BYTES))
    return request(Upload, "POST", f"/uploads/{current.id}/finish", timeout=FINISH_SECONDS)


def _unfinished(request: Request, body: dict[str, Any]) -> Upload | None:
    """Returns the unfinished upload of the same file, if any."""
    query = {"project": body["project"], "kind": body["kind"], "announced": body["sha256"]}
    listed = request(UploadList, "GET", "/uploads", params=query)
    return next((one for one in listed.uploads if one.name == body["name"]), None)


def _append(request: Request, current: Upload, piece: bytes) -> Upload:
    headers = {"Upload-Offset": str(current.offset), "Content-Type": "application/octet-stream"}
    try:
        return request(Upload, "PATCH", f"/uploads/{current.id}", content=piece, headers=headers)
    except Refused as error:
        if error.problem.status != 409:
            raise
        actual = request(Upload, "GET", f"/uploads/{current.id}")
        if actual.offset == current.offset:
            raise
        return actual
