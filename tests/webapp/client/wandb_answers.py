"""A server that answers W&B's own client (wandb-core) over HTTP, as far as a run needs it: GraphQL,
the stream of its files, and uploads.

What cannot be had here is W&B's server itself, which is no package: that it shows what it has. As
W&B's server it keeps lines by their offset, so a request that is repeated changes nothing.

Source: the queries in wandb-core 0.31, and `core/internal/filestream` of wandb/wandb.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_STREAM = re.compile(r"/files/[^/]+/[^/]+/[^/]+/file_stream$")
_OPERATION = re.compile(r"^\s*(?:query|mutation)\s+(\w+)", re.MULTILINE)
_PROJECT = {"id": "p", "name": "grove", "entity": {"id": "e", "name": "lab"}}


class Wandb:
    """What the server has of one run, and what was requested of it."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = {}
        """Lines by name of the file, as `wandb-history.jsonl`."""
        self.files: dict[str, bytes] = {}
        self.config = "{}"
        self.is_there = False
        self.exit_code: int | None = None
        self.is_gone = False
        self.refused = 0
        """Requests that came while it was gone."""
        self.operations: list[str] = []
        self.address = ""
        self._lock = threading.Lock()

    @property
    def rows(self) -> list[dict[str, Any]]:
        with self._lock:
            return [json.loads(line) for line in self.lines.get("wandb-history.jsonl", [])]

    def stream(self, body: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            for name, part in (body.get("files") or {}).items():
                kept = self.lines.setdefault(name, [])
                first, lines = part["offset"], part["content"]
                kept[first : first + len(lines)] = lines
            if body.get("complete"):
                self.exit_code = body.get("exitcode")
        return {}

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        query, given = body["query"], body.get("variables") or {}
        found = _OPERATION.search(query)
        name = found[1] if found else ""
        self.operations.append(name)
        make = getattr(self, f"_{name}", None)
        return {"data": make(given) if make else _nulls(query)}

    def _Viewer(self, _: dict[str, Any]) -> dict[str, Any]:
        who = {"id": "u", "entity": "lab", "username": "lab", "email": "a@b.c", "flags": "{}"}
        return {"viewer": {**who, "teams": {"edges": []}}}

    def _ServerFeaturesQuery(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"serverInfo": {"features": []}}

    def _RunResumeStatus(self, given: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            history, events = (self.lines.get(f"wandb-{one}.jsonl", []) for one in _COUNTED)
            tail = json.dumps(history[-1:])
            bucket = {
                "id": "b", "name": given["name"], "displayName": "A run", "summaryMetrics": "{}",
                "logLineCount": 0, "historyLineCount": len(history), "historyTail": tail,
                "eventsLineCount": len(events), "eventsTail": "[]", "config": self.config,
                "tags": [], "notes": "", "wandbConfig": json.dumps({"t": {"1": []}}),
            }  # fmt: skip
        return {"model": {**_PROJECT, "bucket": bucket if self.is_there else None}}

    def _UpsertBucket(self, given: dict[str, Any]) -> dict[str, Any]:
        is_new, self.is_there = not self.is_there, True
        self.config = given.get("config") or self.config
        count = len(self.lines.get("wandb-history.jsonl", []))
        bucket = {
            "id": "b", "name": given.get("name") or "b", "displayName": "A run",
            "description": "", "config": self.config, "sweepName": None, "project": _PROJECT,
            "historyLineCount": count,
        }  # fmt: skip
        return {"upsertBucket": {"bucket": bucket, "inserted": is_new}}

    def _CreateRunFiles(self, given: dict[str, Any]) -> dict[str, Any]:
        files = [{"name": one, "uploadUrl": f"{self.address}/put/{one}"} for one in given["files"]]
        return {"createRunFiles": {"runID": "b", "uploadHeaders": [], "files": files}}

    def _CreateArtifact(self, given: dict[str, Any]) -> dict[str, Any]:
        """It has the artifact already: that of a table repeats the table's file."""
        sequence = {"id": "s", "latestArtifact": None}
        artifact = {"id": "a", "state": "COMMITTED", "artifactSequence": sequence}
        return {"createArtifact": {"artifact": artifact}}


_COUNTED = ("history", "events")


def _nulls(query: str) -> dict[str, None]:
    """Returns the fields of an operation that this server does not know, all null."""
    inner = query.split("{", 1)[1] if "{" in query else ""
    found = re.search(r"(\w+)", inner)
    return {found[1]: None} if found else {}


@contextmanager
def serving(wandb: Wandb) -> Iterator[str]:
    """Serves it; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None: ...

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def _done(self, content: dict[str, Any], status: int = 200) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            body = self._body()
            if wandb.is_gone:
                wandb.refused += 1
                self._done({"error": "gone"}, 503)
            elif _STREAM.search(self.path):
                self._done(wandb.stream(json.loads(body)))
            elif self.path == "/graphql":
                self._done(wandb.answer(json.loads(body)))
            else:
                self._done({"error": self.path}, 404)

        def do_PUT(self) -> None:
            content = self._body()
            wandb.files[self.path.removeprefix("/put/")] = content
            self._done({})

        def do_GET(self) -> None:
            self._done({})

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    wandb.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield wandb.address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
