"""Runs of a living MLflow server, read over its REST API 2.0.

Invariants: nothing is written, and MLflow is not imported. Credentials go to that server alone: no
redirect is followed, and no message shows them. A server of this machine is reached without a
proxy. No answer is read beyond `MOST_BYTES`, and no list whose pages repeat.

Source: https://mlflow.org/docs/latest/rest-api.html; numbers may be texts, as protobuf's JSON has
64-bit integers, NaN and infinities.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, TypeVar
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

import httpx
import msgspec

from webapp.client.connecting import connected
from webapp.client.imports.stores import About, BadStore, Point

ANSWER_SECONDS = 60.0
"""Deadline of one answer; a page of a long history takes a few."""
MOST_BYTES = 64 << 20
MOST_ARTIFACTS = 1000
"""Files of a run that are listed."""
_PAGE = 1000
_POINTS = 25_000
"""Most points of one page, by MLflow's own limit."""
_LONGEST_FILE = 65_536
_TEXTS = (".txt", ".md", ".json", ".yaml", ".yml", ".csv", ".log")
"""Endings of files whose content is kept."""
_TOKEN, _USER = "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME"
_PASSWORD = "MLFLOW_TRACKING_PASSWORD"  # nosec B105: the name of a variable
_UNAUTHORISED = {401, 403}
_REMEDY = f"set {_TOKEN}, or {_USER} and {_PASSWORD}"


class _Page(msgspec.Struct):
    next_page_token: str = ""


class _Experiment(msgspec.Struct):
    experiment_id: str
    name: str


class _Experiments(_Page):
    experiments: list[_Experiment] = []


class _Value(msgspec.Struct):
    key: str
    value: str = ""


class _Metric(msgspec.Struct):
    key: str


class _Info(msgspec.Struct):
    run_id: str
    run_name: str = ""
    status: str = "RUNNING"
    start_time: int | str = 0


class _Data(msgspec.Struct):
    metrics: list[_Metric] = []
    params: list[_Value] = []
    tags: list[_Value] = []


class _Run(msgspec.Struct):
    info: _Info
    data: _Data = msgspec.field(default_factory=_Data)


class _Runs(_Page):
    runs: list[_Run] = []


class _Point(msgspec.Struct):
    value: float | str = 0.0
    timestamp: int | str = 0
    step: int | str = 0


class _Points(_Page):
    metrics: list[_Point] = []


class _File(msgspec.Struct):
    path: str
    is_dir: bool = False
    file_size: int | str = 0


class _Files(_Page):
    files: list[_File] = []


P = TypeVar("P", bound=_Page)


def is_address(source: str) -> bool:
    """Returns whether a source is the address of a server."""
    return source.startswith(("http://", "https://"))


class Server:
    """An MLflow server. Credentials are those of the address, else of MLflow's own variables.

    Raises, as do its methods:
        BadStore: the server cannot be reached, or did not answer as MLflow; names its address.
    """

    def __init__(self, source: str):
        try:
            parts = urlsplit(source)
            self.address = _without_credentials(parts)
        except ValueError:  # whose text may show a part of a password
            raise BadStore(
                "the address of the MLflow server has no host, or a port that is none: give "
                "http://HOST:PORT, and credentials with %-escapes"
            ) from None
        try:
            self._http = connected(self.address, timeout=ANSWER_SECONDS, **_authorised(parts))
        except (ValueError, httpx.InvalidURL) as error:
            raise BadStore(f"{self.address}: {error}") from None

    def close(self) -> None:
        self._http.close()

    def experiments(self) -> dict[str, str]:
        """Returns the id of each experiment by name."""
        query = {"max_results": _PAGE, "view_type": "ACTIVE_ONLY"}
        pages = self._pages("POST", "experiments/search", _Experiments, query)
        return {one.name: one.experiment_id for page in pages for one in page.experiments}

    def runs(self, experiment: str) -> Iterator[tuple[About, _Run]]:
        """Yields (about, run) of each run, with its params and tags."""
        query = {
            "experiment_ids": [experiment], "run_view_type": "ACTIVE_ONLY", "max_results": _PAGE,
        }  # fmt: skip
        for page in self._pages("POST", "runs/search", _Runs, query):
            for one in page.runs:
                info = one.info
                start = str(self._number("runs/search", info.start_time, int))
                about = {"id": info.run_id, "name": info.run_name, "status": info.status}
                yield {**about, "start": start}, one

    def values(self, key: _Run, kind: str) -> dict[str, str]:
        """Returns the params or tags of a run."""
        return {
            one.key: one.value for one in (key.data.tags if kind == "tags" else key.data.params)
        }

    def points(self, key: _Run) -> Iterator[Point]:
        """Yields each point of each metric."""
        path = "metrics/get-history"
        for name in [one.key for one in key.data.metrics]:
            query = {"run_id": key.info.run_id, "metric_key": name, "max_results": _POINTS}
            for page in self._pages("GET", path, _Points, query):
                for one in page.metrics:
                    at, step = (self._number(path, x, int) for x in (one.timestamp, one.step))
                    yield at, step, name, self._number(path, one.value, float)

    def files(self, key: _Run) -> Iterator[tuple[str, int, str | None]]:
        """Yields path, bytes and, of a short text, the content of each artifact of a run."""
        try:
            yield from self._files(key)
        except BadStore as error:
            raise BadStore(f"{error}; or leave artifacts out: --no-artifacts") from None

    def _files(self, key: _Run) -> Iterator[tuple[str, int, str | None]]:
        folders, listed = [""], 0
        while folders:
            folder = folders.pop()
            query: dict[str, Any] = {"run_id": key.info.run_id}
            if folder:
                query["path"] = folder
            for page in self._pages("GET", "artifacts/list", _Files, query):
                for one in page.files:
                    listed += 1
                    if listed > MOST_ARTIFACTS:
                        return
                    if one.is_dir:
                        folders.append(one.path)
                        continue
                    size = self._number("artifacts/list", one.file_size, int)
                    is_text = one.path.lower().endswith(_TEXTS) and size <= _LONGEST_FILE
                    yield one.path, size, self._text(key, one.path) if is_text else None

    def _text(self, key: _Run, path: str) -> str:
        names = f"path={quote(path, safe='')}&run_uuid={quote(key.info.run_id, safe='')}"
        content = self._answer("GET", f"/get-artifact?{names}", f"the artifact {path}")
        return content.decode("utf-8", "replace")

    def _pages(self, method: str, path: str, kind: type[P], query: dict[str, Any]) -> Iterator[P]:
        seen: set[str] = set()
        while True:
            content = {"params": query} if method == "GET" else {"json": query}
            data = self._answer(method, f"/api/2.0/mlflow/{path}", path, **content)
            try:
                page = msgspec.json.decode(data, type=kind)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise self._odd(path, str(error)) from None
            yield page
            if not page.next_page_token:
                return
            if page.next_page_token in seen:
                raise self._odd(path, "a page comes twice")
            seen.add(page.next_page_token)
            query = {**query, "page_token": page.next_page_token}

    def _answer(self, method: str, where: str, what: str, **content: Any) -> bytes:
        try:
            with self._http.stream(method, f"{self.address}{where}", **content) as answer:
                body = bytearray()
                for block in answer.iter_bytes():
                    body += block
                    if len(body) > MOST_BYTES:
                        raise self._odd(what, f"more than {MOST_BYTES} bytes at once")
        except httpx.TransportError as error:
            reason = str(error) or type(error).__name__
            raise BadStore(
                f"{self.address}: no answer ({reason}); check the address, that MLflow runs "
                "there, and the proxy of the environment"
            ) from None
        self._refuse_status(answer, what, bytes(body))
        return bytes(body)

    def _refuse_status(self, answer: httpx.Response, what: str, body: bytes) -> None:
        """Raises `BadStore` unless the server has answered what was requested."""
        if answer.is_success:
            return
        status = answer.status_code
        if answer.is_redirect:
            target = urlsplit(answer.headers.get("Location", ""))
            place = _without_credentials(target) if target.hostname else target.path
            raise BadStore(f"{self.address}: {what} is redirected to {place}: give that address")
        if status in _UNAUTHORISED:
            raise BadStore(f"{self.address}: {what} needs other credentials ({status}): {_REMEDY}")
        text = body[:300].decode("utf-8", "replace").strip() or answer.reason_phrase
        raise BadStore(f"{self.address}: {what} answered {status}: {text}")

    def _number(self, path: str, value: float | str, kind: type[Any]) -> Any:
        try:
            return kind(value)
        except ValueError:
            raise self._odd(path, f"{value!r} is no number") from None

    def _odd(self, path: str, reason: str) -> BadStore:
        return BadStore(
            f"{self.address}: {path} is no answer of MLflow's REST API 2.0 ({reason}); give the "
            "address of its tracking server"
        )


def _without_credentials(parts: SplitResult) -> str:
    """Returns the address without user, password, query and fragment. Raises `ValueError`."""
    if not parts.hostname:
        raise ValueError("it has no host")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = f":{parts.port}" if parts.port else ""
    return urlunsplit((parts.scheme, f"{host}{port}", parts.path.rstrip("/"), "", ""))


def _authorised(parts: SplitResult) -> dict[str, Any]:
    """Returns the options of a client that sends the credentials. Raises `ValueError`, which does
    not show them."""
    user = unquote(parts.username or "") or os.environ.get(_USER, "")
    password = unquote(parts.password or "") or os.environ.get(_PASSWORD, "")
    if user:
        return {"auth": httpx.BasicAuth(user, password)}
    token = os.environ.get(_TOKEN, "").strip()
    if not token:
        return {}
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise ValueError(f"{_TOKEN} has a character that no token has")
    return {"headers": {"Authorization": f"Bearer {token}"}}
