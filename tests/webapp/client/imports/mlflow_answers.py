"""A server with the answers that MLflow's REST API 2.0 documents, in pages of two.

Source: https://mlflow.org/docs/latest/rest-api.html, and `get_artifact_handler` of
`mlflow/server/handlers.py`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

PAGE = 2
API = "/api/2.0/mlflow/"


class Mlflow:
    """What the server has, and what was requested of it."""

    def __init__(self) -> None:
        self.experiments = [{"experiment_id": "0", "name": "Default"}]
        self.runs: list[dict[str, Any]] = []
        self.history: dict[str, list[dict[str, Any]]] = {}
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str, str | None]] = []
        """Method, path and header Authorization."""
        self.instead: dict[str, tuple[int, dict[str, str], bytes]] = {}
        """Status, headers and body of an answer other than the documented one, by path."""

    def add_run(self, name: str, metrics: dict[str, list[dict[str, Any]]], **info: Any) -> str:
        """Adds a run of the experiment `sums`; returns its id."""
        run_id = f"{len(self.runs):032x}"
        about = {"run_id": run_id, "run_name": name, "status": "FINISHED", "start_time": 9000}
        self.runs.append({
            "info": {**about, "experiment_id": "1", **info},
            "data": {
                "metrics": [{"key": key, **points[-1]} for key, points in metrics.items()],
                "params": [{"key": "lr", "value": "0.5"}],
                "tags": [
                    {"key": "team", "value": "oak"},
                    {"key": "mlflow.source.git.repoURL", "value": "https://u:s3cret@git/x"},
                ],
            },
        })  # fmt: skip
        self.history |= {f"{run_id} {key}": points for key, points in metrics.items()}
        return run_id

    def answer(self, method: str, path: str, query: dict[str, Any]) -> Any:
        """Returns an answer's object, or bytes; None if there is no such address."""
        if path == "/get-artifact":
            return self.files.get(query["path"])
        token = query.get("page_token", "0")
        first = int(token)
        name, rows = {
            ("POST", f"{API}experiments/search"): ("experiments", self.experiments),
            ("POST", f"{API}runs/search"): ("runs", self.runs),
            ("GET", f"{API}metrics/get-history"): (
                "metrics", self.history.get(f"{query.get('run_id')} {query.get('metric_key')}", []),
            ),
            ("GET", f"{API}artifacts/list"): ("files", self._listed(query.get("path", ""))),
        }.get((method, path), ("", None))  # fmt: skip
        if rows is None:
            return None
        more = {"next_page_token": str(first + PAGE)} if first + PAGE < len(rows) else {}
        return {name: rows[first : first + PAGE], **more}

    def _listed(self, folder: str) -> list[dict[str, Any]]:
        below = folder.rstrip("/") + "/" if folder else ""
        rows: dict[str, dict[str, Any]] = {}
        for path, content in self.files.items():
            if path.startswith(below):
                inner, _, rest = path.removeprefix(below).partition("/")
                about = {"is_dir": True} if rest else {"is_dir": False, "file_size": len(content)}
                rows[below + inner] = {"path": below + inner, **about}
        return list(rows.values())


@contextmanager
def serving(mlflow: Mlflow) -> Iterator[str]:
    """Serves it; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def _do(self, method: str) -> None:
            parts = urlsplit(self.path)
            mlflow.requests.append((method, parts.path, self.headers.get("Authorization")))
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            found = mlflow.instead.get(parts.path)
            if found is None:
                result = mlflow.answer(method, parts.path, {**dict(parse_qsl(parts.query)), **body})
                data = result if isinstance(result, bytes) else json.dumps(result).encode()
                found = (404 if result is None else 200, {}, data)
            status, headers, data = found
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._do("GET")

        def do_POST(self) -> None:
            self._do("POST")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
