"""REST client over httpx: methods that paginate lists, follow runs and transfer files; `rest` has
every operation unchanged.

Waits: for a response (`timeout`, 30 s), for the turn of an upload (`TURN_SECONDS`), for an export
(`EXPORT_SECONDS`), for a live event (the server sends something every 15 s; a tail that is silent
for longer is reconnected after its last event).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from webapp.client import uploading
from webapp.client.connecting import clean_token, connected
from webapp.client.rest import Operations
from webapp.client.types import (
    Answer,
    DatasetVersion,
    Event,
    Export,
    IngestStatus,
    Model,
    PointPage,
    Points,
    Problem,
    Project,
    Refused,
    Run,
    Search,
    Upload,
    Waiting,
    Workspace,
)
from webapp.client.whole_files import whole_file

Kind = TypeVar("Kind")

POINTS_AT_ONCE = 25_000
EXPORT_SECONDS = 900.0
"""Deadline for writing an export file; the server has the same."""
SILENCE_SECONDS = 45.0
READ_SECONDS = 150.0
"""Deadline for the server to read an uploaded dataset."""
RETRY_SECONDS = 1.0
TURN_SECONDS = 3600.0
"""Deadline for the turn of an upload that others are before."""
_WAITS, _RETRY = 202, "Retry-After"
RETRIES = 30
"""Consecutive reconnections of a broken tail."""


class Grove:
    """Client of one server with one token. Use it as a context manager, or `close` it."""

    def __init__(self, address: str, token: str, timeout: float = 30.0):
        self._http = connected(
            address,
            base_url=f"{address.rstrip('/')}/api/v1",
            headers={"Authorization": f"Bearer {clean_token(token)}"},
            timeout=timeout,
        )

        self.on_waiting: Callable[[Waiting], object] = lambda place: None
        """Called with the place in the queue whenever a request waits for its turn."""

        self.rest = Operations(self._send, self._stream)
        """Every operation of REST as a typed method."""

    def __enter__(self) -> Grove:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def workspaces(self) -> Iterator[Workspace]:
        return self._walk("workspaces", Workspace)

    def projects(self) -> Iterator[Project]:
        return self._walk("projects", Project)

    def runs(self, **filters: Any) -> Iterator[Run]:
        """Yields runs, newest first; filters `state`, `project`, `name`, `created_by` and `sort` as
        in REST."""
        return self._walk("runs", Run, **filters)

    def run(self, run_id: str) -> Run:
        return self.ask(Run, "GET", f"/runs/{run_id}")

    def create_run(
        self,
        project: int,
        recipe: str,
        overrides: dict[str, Any] | None = None,
        name: str = "",
        *,
        outside: bool = False,
        key: str | None = None,
    ) -> Run:
        """Creates a queued run in `project`; an `outside` run waits for the events of an external
        engine. A repeated request with the same `key` returns the run created first."""
        body: dict[str, Any] = {"project": project, "recipe": recipe, "name": name}
        body["overrides"] = overrides or {}
        if outside:
            body["outside"] = True
        headers = {"Idempotency-Key": key} if key else {}
        return self.ask(Run, "POST", "/runs", json=body, headers=headers)

    def searches(self, project: int) -> Iterator[Search]:
        """Yields searches at test time, newest first."""
        return self._walk("searches", Search, where=f"/projects/{project}/searches")

    def create_search(
        self,
        project: int,
        team: Sequence[str],
        problem: dict[str, Any],
        overrides: dict[str, Any] | None = None,
        name: str = "",
        *,
        key: str | None = None,
    ) -> Search:
        """Creates a queued search of a team (`starter:NAME`, `registry:NAME@VERSION`,
        `package:NAME`) on a problem; `key` as in `create_run`."""
        body = {"team": list(team), "problem": problem, "overrides": overrides or {}, "name": name}
        headers = {"Idempotency-Key": key} if key else {}
        path = f"/projects/{project}/searches"
        return self.ask(Search, "POST", path, json=body, headers=headers)

    def answer(self, run_id: str) -> Answer | None:
        """Returns the answer of a search; None while it has none."""
        return self.ask(Answer | None, "GET", f"/searches/{run_id}/answer")

    def stop(self, run_id: str) -> Run:
        return self.ask(Run, "POST", f"/runs/{run_id}/stop")

    def resume(self, run_id: str) -> Run:
        return self.ask(Run, "POST", f"/runs/{run_id}/resume")

    def models(self, **filters: Any) -> Iterator[Model]:
        """Yields models; `project` and `name` as in REST."""
        return self._walk("models", Model, **filters)

    def promote(self, model: int, alias: str, version: int | None, reason: str) -> dict[str, Any]:
        """Moves an alias to a version, or removes it (None); where the workspace requires a second
        person's approval, the response's `state` is waiting."""
        body = {"alias": alias, "version": version, "reason": reason}
        return self.ask(dict[str, Any], "POST", f"/models/{model}/promotions", json=body)

    def blocks(self, path: str) -> Iterator[bytes]:
        """Yields the response body of an address as it arrives."""
        with self._http.stream("GET", path) as response:
            _check(response)
            yield from response.iter_bytes()

    def events(self, run_id: str, after: int = 0, topics: str = "*") -> Iterator[Event]:
        """Yields the events stored now after a seq."""
        query = {"after": after, "topics": topics}
        with self._http.stream("GET", f"/runs/{run_id}/events", params=query) as response:
            _check(response)
            for line in response.iter_lines():
                yield msgspec.json.decode(line, type=Event)

    def watch(self, run_id: str, after: int = 0, topics: str = "*") -> Iterator[Event]:
        """Yields the events stored after a seq, then live ones, until the run has ended. A broken
        connection is reopened after the last event: none is lost, none is repeated.

        Raises:
            httpx.TransportError: the connection cannot be reopened.
        """
        last, failures = after, 0
        while True:
            try:
                for event in self._tail(run_id, last, topics):
                    last, failures = event.seq, 0
                    yield event
                return
            except httpx.TransportError:
                failures += 1
                if failures > RETRIES:
                    raise
                time.sleep(RETRY_SECONDS)

    def send(self, run_id: str, lines: Sequence[bytes]) -> IngestStatus:
        """Sends lines of an engine's log (`events.jsonl`), in order, for a run that is `outside`;
        lines stored already change nothing.

        Raises:
            Refused: with `problem.expected_seq` if events before these are missing.
        """
        body = b'{"events":[%s]}' % b",".join(lines)
        headers = {"Content-Type": "application/json"}
        return self.ask(
            IngestStatus, "POST", f"/runs/{run_id}/events", content=body, headers=headers
        )

    def points(self, run_id: str, metric: str) -> Points:
        """Returns all points of one metric, in the order in which they were recorded."""
        query = {"fields": "step,time,value", "limit": POINTS_AT_ONCE}
        path = f"/runs/{run_id}/metrics/{quote(metric, safe='')}/points"
        page = first = self.ask(PointPage, "GET", path, params=query)
        while page.next is not None:
            page = self.ask(PointPage, "GET", path, params={**query, "cursor": page.next})
            first.points.extend(page.points)
        return first.points

    def exports(self, **filters: Any) -> Iterator[Export]:
        """Yields exports, newest first; `project` and `state` as in REST."""
        return self._walk("exports", Export, **filters)

    def ask_for_export(
        self,
        table: str,
        file: str,
        *,
        project: int | None = None,
        run: str | None = None,
        key: str | None = None,
        **filters: Any,
    ) -> Export:
        """Queues the export of a table of one run, or of the runs of a project that match the
        filters."""
        body = {"table": table, "format": file, "project": project, "run": run, "filters": filters}
        headers = {"Idempotency-Key": key} if key else {}
        return self.ask(Export, "POST", "/exports", json=body, headers=headers)

    def finished_export(self, export_id: str, seconds: float = EXPORT_SECONDS) -> Export:
        """Waits for the export and returns it once it is ready or failed.

        Raises:
            TimeoutError: it was neither within `seconds`.
        """
        until = time.monotonic() + seconds
        while not (export := self.ask(Export, "GET", f"/exports/{export_id}")).is_over:
            if time.monotonic() > until:
                raise TimeoutError(f"export {export_id} is {export.state} after {seconds:.0f} s")
            time.sleep(RETRY_SECONDS)
        return export

    def download(self, export: Export, path: Path) -> None:
        """Writes the export's file to `path`, complete and verified, or not at all.

        Raises:
            Refused: it is not ready. ValueError: the digest differs from the written file's.
        """
        digest = hashlib.sha256()
        with (
            self._http.stream("GET", f"/exports/{export.id}/file") as response,
            whole_file(path) as file,
        ):
            _check(response)
            for piece in response.iter_bytes():
                digest.update(piece)
                file.write(piece)
            if digest.hexdigest() != export.sha256:
                raise ValueError(f"{path}: the downloaded file is damaged; download it again")

    def upload(self, file: Path, project: int, kind: str) -> Upload:
        """Uploads a file of `kind` dataset or model; an interrupted upload resumes at the server's
        offset.

        Raises:
            Refused: the server does not accept it.
        """
        return uploading.upload(self.ask, file, project, kind)

    def add_dataset(
        self, project: int, name: str, files: Sequence[Path], note: str = ""
    ) -> DatasetVersion:
        """Creates a dataset version of the problems of some files; equal problems give the same
        version."""
        uploads = [self.upload(file, project, "dataset").id for file in files]
        body = {"project": project, "name": name, "uploads": uploads, "note": note}
        return self.ask(DatasetVersion, "POST", "/datasets", json=body, timeout=READ_SECONDS)

    def dataset_version(self, version_id: int) -> DatasetVersion:
        return self.ask(DatasetVersion, "GET", f"/datasets/versions/{version_id}")

    def dataset_content(self, version_id: int) -> Iterator[bytes]:
        """Yields all problems of a version as JSON lines, block by block."""
        with self._http.stream("GET", f"/datasets/versions/{version_id}/content") as response:
            _check(response)
            yield from response.iter_bytes()

    def _tail(self, run_id: str, after: int, topics: str) -> Iterator[Event]:
        query = {"after": after, "topics": topics}
        headers = {"Accept": "text/event-stream"}
        timeout = httpx.Timeout(self._http.timeout.connect, read=SILENCE_SECONDS)
        path = f"/runs/{run_id}/events"
        with self._http.stream("GET", path, params=query, headers=headers, timeout=timeout) as tail:
            _check(tail)
            for line in tail.iter_lines():
                if line.startswith("data: "):
                    yield msgspec.json.decode(line[len("data: ") :], type=Event)

    def _walk(
        self, name: str, kind: type[Kind], /, where: str = "", **query: Any
    ) -> Iterator[Kind]:
        query = {key: value for key, value in query.items() if value is not None}
        while True:
            page = self.ask(dict[str, Any], "GET", where or f"/{name}", params=query)
            yield from msgspec.convert(page[name], list[kind])
            if page["next"] is None:
                return
            query["cursor"] = page["next"]

    def ask(self, kind: type[Kind], method: str, path: str, **request: Any) -> Kind:
        """Calls any REST operation and returns its response as `kind`. Raises `Refused`."""
        return msgspec.json.decode(self._send(method, path, **request).content, type=kind)

    def _send(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Repeats a request that waits for its turn, as the server says, for `TURN_SECONDS` at
        most. Raises `Refused`, or `TimeoutError` with the place."""
        until = time.monotonic() + TURN_SECONDS
        while True:
            response = self._http.request(method, path, **request)
            _check(response)
            if response.status_code != _WAITS or _RETRY not in response.headers:
                return response
            place = msgspec.json.decode(response.content, type=Waiting)
            if time.monotonic() > until:
                raise TimeoutError(place.detail)
            self.on_waiting(place)
            time.sleep(float(response.headers[_RETRY]))

    @contextmanager
    def _stream(self, method: str, path: str, **request: Any) -> Iterator[httpx.Response]:
        with self._http.stream(method, path, **request) as response:
            _check(response)
            yield response


def _foreign(response: httpx.Response) -> str:
    """Returns what a response says that is none of Grove's REST."""
    if "html" in response.headers.get("content-type", ""):
        return f"{response.reason_phrase}: a web page answers; check the address of the server"
    return response.text[:500] or response.reason_phrase


def _check(response: httpx.Response) -> None:
    if response.is_success:
        return
    response.read()
    try:
        problem = msgspec.json.decode(response.content, type=Problem)
    except msgspec.DecodeError:
        problem = Problem(response.status_code, _foreign(response))
    raise Refused(problem)
