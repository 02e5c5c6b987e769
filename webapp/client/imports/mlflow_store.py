"""Runs of MLflow, read from where it stores them: a folder `mlruns`, a database of SQLite, or a
server (`mlflow_server`).

Invariants: metrics keep their step and time; a run that has not ended is left out, as is one that
was deleted. Nothing is written, and MLflow is not imported.

Source: `mlflow/store/tracking/file_store.py` and `dbmodels/models.py` of MLflow 3.17.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from webapp.client.imports.mlflow_server import Server, is_address
from webapp.client.imports.stores import About, BadStore, Point, Store
from webapp.client.imports.whole import Finished

_STATES = {"FINISHED": "finished", "FAILED": "failed", "KILLED": "stopped"}
_STATUS = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_OF_MLFLOW = "mlflow."
"""Prefix of tags that MLflow sets itself."""
_DATABASE, _FOLDER = "sqlite:///", "file:"
_LARGEST = 1.7976931348623157e308
"""How a database stores infinity."""


def runs(source: str, experiment: str, *, artifacts: bool = True) -> Iterator[Finished | str]:
    """Yields each run of an experiment, oldest first; of one that has not ended a sentence.
    `artifacts`: whether to read those that a server has.

    Raises:
        BadStore: the source cannot be read, or has no such experiment.
    """
    try:
        with closing(_opened(source)) as store:
            known = store.experiments()
            if experiment not in known:
                names = ", ".join(sorted(known)[:20]) or "none"
                where = store.address if isinstance(store, Server) else source
                raise BadStore(f"--experiment {experiment!r}: {where} has {names}")
            found = sorted(store.runs(known[experiment]), key=lambda one: int(one[0]["start"]))
            for about, key in found:
                yield _finished(store, about, key, artifacts)
    except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
        raise BadStore(f"{source}: {error}") from None


def _opened(source: str) -> Store:
    if is_address(source):
        return Server(source)
    if source.startswith(_DATABASE):
        return _Database(Path(source.removeprefix(_DATABASE)))
    folder = Path(source.removeprefix(_FOLDER).removeprefix("//"))
    if "://" in source or not folder.is_dir():
        raise BadStore(
            f"{source}: there is no such folder; give that of MLflow's runs (mlruns), or its "
            "database as sqlite:///FILE, or the address of its server, http://HOST:PORT"
        )
    return _Folder(folder)


def _finished(store: Store, about: About, key: Any, artifacts: bool) -> Finished | str:
    name, state = about["name"] or about["id"], _STATES.get(about["status"])
    if state is None:
        return f"{name} is {about['status'].lower()}: import it once it has ended"
    # By time, step, and how often the name was logged then: no value replaces another.
    rows: dict[tuple[int, int, int], dict[str, Any]] = defaultdict(dict)
    seen: Counter[tuple[int, int, str]] = Counter()
    try:
        for at, step, metric, value in store.points(key):
            rows[at, step, seen[at, step, metric]][metric] = value
            seen[at, step, metric] += 1
        files = list(store.files(key)) if artifacts else []
    except BadStore as error:
        return str(error)
    if texts := {path: text for path, _, text in files if text is not None}:
        at, step, again = max(rows, default=(int(about["start"]), 0, 0))
        rows[at, step, again] |= {f"artifacts/{path}": text for path, text in texts.items()}
    tags = store.values(key, "tags")
    own = {name: text for name, text in tags.items() if not name.startswith(_OF_MLFLOW)}
    return Finished(
        id=about["id"], name=about["name"], state=state,
        rows=[(at / 1000, step, rows[at, step, again]) for at, step, again in sorted(rows)],
        config={**store.values(key, "params"), **({"tags": own} if own else {})},
        notes=tags.get("mlflow.note.content", ""), start=int(about["start"]) / 1000,
        summary={"artifacts": {path: size for path, size, _ in files}} if files else {},
    )  # fmt: skip


class _Folder:
    """A folder of experiments, each a folder of runs."""

    def __init__(self, root: Path):
        self._root = root

    def close(self) -> None: ...

    def experiments(self) -> dict[str, str]:
        metas = ((path, _meta(path)) for path in sorted(self._root.glob("*/meta.yaml")))
        return {
            meta.get("name", ""): path.parent.name
            for path, meta in metas
            if meta.get("lifecycle_stage", "active") == "active"
        }

    def runs(self, experiment: str) -> Iterator[tuple[dict[str, str], str]]:
        for path in sorted((self._root / experiment).glob("*/meta.yaml")):
            meta = _meta(path)
            if meta.get("lifecycle_stage", "active") != "active":
                continue
            status = _STATUS.get(meta.get("status", ""), "RUNNING")
            start = meta.get("start_time", "0")
            about = {"id": path.parent.name, "name": meta.get("run_name", ""), "status": status}
            yield {**about, "start": start if start.isdigit() else "0"}, str(path.parent)

    def values(self, key: str, kind: str) -> dict[str, str]:
        return {name: path.read_text("utf-8") for name, path in _files(Path(key) / kind)}

    def files(self, key: str) -> Iterator[tuple[str, int, str | None]]:
        return iter(())  # they may be anywhere

    def points(self, key: str) -> Iterator[Point]:
        for name, path in _files(Path(key) / "metrics"):
            with path.open(encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        yield _point(path, number, name, line)


def _point(path: Path, number: int, name: str, line: str) -> Point:
    words = line.split()
    try:
        return int(words[0]), int(words[2]) if len(words) > 2 else 0, name, float(words[1])
    except (IndexError, ValueError):
        raise BadStore(
            f"{path}, line {number}: {line.strip()[:80]!r}: this is no metric (time, value, step)"
        ) from None


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yields names and files below a folder; a name with slashes is a path."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path


def _meta(path: Path) -> dict[str, str]:
    """Returns the top level of a `meta.yaml`, whose values are all scalars; null is left out."""
    entries: dict[str, str] = {}
    name = ""
    for line in path.read_text("utf-8").splitlines():
        if line[:1].isspace() and name:  # a long text goes on
            entries[name] += f" {line.strip()}"
            continue
        name, _, text = line.partition(": ")
        name = name.strip().removesuffix(":")
        entries[name] = text.strip()
    scalars = {name: _scalar(text) for name, text in entries.items()}
    return {name: text for name, text in scalars.items() if text is not None}


def _scalar(text: str) -> str | None:
    if text in ("null", "~", ""):
        return None
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return str(json.loads(text))
        except ValueError:  # an escape that YAML alone has
            return text[1:-1]
    return text


class _Database:
    """A database of SQLite, opened for reading."""

    def __init__(self, path: Path):
        if not path.is_file():
            raise BadStore(f"{path}: there is no such file")
        self._database = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)

    def close(self) -> None:
        self._database.close()

    def experiments(self) -> dict[str, str]:
        query = "SELECT name, experiment_id FROM experiments WHERE lifecycle_stage = 'active'"
        return {name: str(number) for name, number in self._database.execute(query)}

    def runs(self, experiment: str) -> Iterator[tuple[dict[str, str], str]]:
        query = (
            "SELECT run_uuid, coalesce(name, ''), status, coalesce(start_time, 0) FROM runs "
            "WHERE experiment_id = ? AND lifecycle_stage = 'active'"
        )
        for key, name, status, start in self._database.execute(query, (int(experiment),)):
            yield {"id": key, "name": name, "status": status, "start": str(start)}, key

    def values(self, key: str, kind: str) -> dict[str, str]:
        table = {"params": "params", "tags": "tags"}[kind]
        query = f"SELECT key, value FROM {table} WHERE run_uuid = ?"
        return dict(self._database.execute(query, (key,)))

    def files(self, key: str) -> Iterator[tuple[str, int, str | None]]:
        return iter(())  # they may be anywhere

    def points(self, key: str) -> Iterator[Point]:
        query = (
            "SELECT timestamp, step, key, value, is_nan FROM metrics WHERE run_uuid = ? "
            "ORDER BY timestamp, step, key"
        )
        for at, step, name, value, is_nan in self._database.execute(query, (key,)):
            yield at, step, name, math.nan if is_nan else _finite(value)


def _finite(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= _LARGEST else float(value)
