"""Exports of workspaces as files: whole ones, damaged and hostile ones, and their imports."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tests.helpers.builders import Cast
from webapp.accounts.models import User
from webapp.artifacts.models import Upload
from webapp.artifacts.services import append, begin, finish
from webapp.offboarding.export import MANIFEST, export
from webapp.offboarding.imports import states
from webapp.offboarding.imports.checking import Included, LeftOut, Summary
from webapp.offboarding.imports.requests import request_import
from webapp.offboarding.models import ImportRequest


def exported(cast: Cast, path: Path) -> Path:
    """Writes the export of the cast's workspace."""
    path.write_bytes(b"".join(export(cast.project.workspace, cast.alice)))
    return path


def a_zip_upload(user: User, content: bytes, name: str = "trees.zip") -> Upload:
    """A finished upload of the zip of a workspace."""
    upload = begin(None, user, Upload.Kind.WORKSPACE, name, len(content))
    return finish(append(upload, 0, io.BytesIO(content)))


def a_checked_import(cast: Cast) -> ImportRequest:
    """Alice's import into her workspace, of a file that is no zip, as if it had been checked."""
    request_import(a_zip_upload(cast.alice, b"PK planted"), cast.alice, cast.project.workspace)
    one = states.take()
    included = [Included("runs", 3, "1 was active when it was exported and arrives as stopped")]
    left_out = [LeftOut("tokens", None, "No export has them.")]
    summary = Summary("Trees", "0.3.0", 1 << 20, included, left_out)
    states.record_check(one, msgspec.to_builtins(summary))
    return one


def damaged_files(path: Path, run_id: uuid.UUID) -> dict[str, bytes]:
    """Files made of an export with that run, none of which can be imported, by a pattern of the
    reason."""
    whole, log = path.read_bytes(), f"runs/{run_id}/events.ndjson"
    node = [7, 1.0, "node.open", {"tree": 0, "node": 5, "agent": "a", "parent": 9, "depth": 1}]
    events = [[1, 1.0, "log.line", {"level": "info", "message": "x"}], node]
    return {
        "is no zip, or not a whole one": whole[: len(whole) // 2],
        "manifest.json: is missing": b"PK\5\6" + bytes(18),
        "it was changed": changed(path, {"runs.jsonl": with_field("seed", 7)}, listed=False),
        "has layout 2": changed(path, {MANIFEST: lambda m: {**m, "format": 2}}),
        "../evil.jsonl: is no part": changed(path, {}, extra=[("../evil.jsonl", b"")]),
        "runs.jsonl: is a link": changed(path, {}, linked="runs.jsonl"),
        "is there twice": changed(path, {}, extra=[("runs.jsonl", b"{}")]),
        "would unpack to": changed(path, {log: b"\n" * (80 << 20)}),
        "in its manifest alone": changed(path, {"people.jsonl": None}, listed=False),
        "comments.jsonl: refers to the run": changed(
            path, {"comments.jsonl": with_field("run_id", str(uuid.uuid4()))}
        ),
        "has the project .* twice": changed(
            path, {"projects.jsonl": _whole_twice(path, "projects.jsonl")}
        ),
        "refers to the person 999": changed(path, {"runs.jsonl": with_field("created_by_id", 999)}),
        "line 1: cannot be used: .*number": changed(path, {"runs.jsonl": with_field("number", -1)}),
        "settings of run": changed(path, {"runs.jsonl": with_field("config", {"agents": 3})}),
        "tags: give words": changed(path, {"runs.jsonl": with_field("tags", ["two words"])}),
        "cannot follow event": changed(path, {log: _as_lines([events[0], [3, *events[0][1:]]])}),
        "line 2: node.open": changed(path, {log: _as_lines([events[0], node])}),
        "tree and node are integers": changed(path, {log: _as_lines([[*node[:3], {"tree": 1.5}]])}),
        "rows contradict each other": changed(
            path, {"experiments.jsonl": with_field("config", _deep(700))}
        ),
        "line 1: new.kind": changed(path, {log: _as_lines([[1, 1.0, "new.kind", {}]])}),
    }  # fmt: skip


def changed(
    path: Path,
    changes: dict[str, Any],
    *,
    listed: bool = True,
    extra: Any = (),
    linked: str = "",
) -> bytes:
    """The export with other members: bytes, a function of a member's rows, or None to leave it out;
    unless `listed`, the manifest does not say so. `linked` is a symbolic link."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist() if name != MANIFEST}
        manifest = json.loads(file.read(MANIFEST))
    for name, change in changes.items():
        if name == MANIFEST:
            manifest = change(manifest)
            continue
        if callable(change):
            rows = [json.loads(line) for line in members[name].splitlines()]
            change = "".join(json.dumps(change(row)) + "\n" for row in rows).encode()
        members[name] = change
    if listed:
        manifest["members"] = {
            name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in members.items()
            if data is not None
        }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in [*members.items(), *extra, (MANIFEST, json.dumps(manifest).encode())]:
            if data is not None:
                info = zipfile.ZipInfo(name)
                info.compress_type = zipfile.ZIP_DEFLATED
                if name == linked:
                    info.external_attr = (stat.S_IFLNK | 0o777) << 16
                file.writestr(info, data)
    return out.getvalue()


def with_field(name: str, value: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda row: {**row, name: value}


def _whole_twice(path: Path, name: str) -> bytes:
    with zipfile.ZipFile(path) as file:
        return file.read(name) * 2


def _deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def _as_lines(rows: list[Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
