"""Client of a Grove server's model registry, for `registry:NAME@VERSION` on a command line.

GROVE_ADDRESS and GROVE_TOKEN set the server and the account; the token needs to read models, and
runs for the role and the sampling settings of a run's agent. A version is downloaded once, into
`grove/models` of the user's cache (XDG_CACHE_HOME), under the digest of all its files.

Invariant: a directory in the cache is a complete version: each file has the size and the SHA-256
that the server listed, and no file name leads out of the directory.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx

from engine.config.deadlines import REGISTRY
from engine.inference.connecting import connected, secret_of

PREFIX = "registry:"
DEFAULT_ADDRESS = "http://localhost:8000"
_README = "README.md"
"""Generated for each archive: it names requester and request, and is no part of the version."""
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_BLOCK = 1 << 20


@dataclass(frozen=True)
class RegisteredModel:
    """A model version in the cache."""

    name: str
    """Name of its model."""
    directory: Path
    agent: dict[str, Any] | None
    """Settings of its agent in the run that produced it; None if no run did."""


def registered_model(reference: str) -> RegisteredModel:
    """Returns the version that `registry:NAME@VERSION` names; downloads it unless it is cached.

    Raises:
        ValueError: there is no such version, no token, or no server; names the remedy.
    """
    name, at, which = reference.removeprefix(PREFIX).rpartition("@")
    if not at or not name or not which:
        raise ValueError(f"{reference}: write registry:NAME@NUMBER or registry:NAME@ALIAS")
    address = os.environ.get("GROVE_ADDRESS") or DEFAULT_ADDRESS
    token = secret_of("GROVE_TOKEN")
    if not token:
        raise ValueError(
            f"{reference}: set GROVE_TOKEN to a token that reads models (API tokens, on {address}),"
            " and GROVE_ADDRESS to the server's address"
        )
    try:
        with connected(
            httpx.Client,
            address,
            base_url=f"{address.rstrip('/')}/api/v1",
            headers={"authorization": f"Bearer {token}"},
            timeout=REGISTRY.seconds,
        ) as client:
            return _Registry(client, reference).model(name, which)
    except (httpx.HTTPError, httpx.InvalidURL, zipfile.BadZipFile) as error:
        what = str(error) or type(error).__name__
        remedy = f"; {REGISTRY.remedy}" if isinstance(error, httpx.TimeoutException) else ""
        raise ValueError(f"{reference}: {address} (GROVE_ADDRESS): {what}{remedy}") from None


@dataclass(frozen=True)
class _Registry:
    """Resolves one reference at one server."""

    client: httpx.Client
    reference: str

    def model(self, name: str, which: str) -> RegisteredModel:
        model = self._model_named(name)
        number = which.removeprefix("v")
        if not (number.isascii() and number.isdigit()):
            number = model["aliases"].get(which)
            if number is None:
                there = ", ".join(sorted(model["aliases"])) or "none"
                raise self._error(f"{name} has no alias {which}; its aliases: {there}")
        where = f"/models/{model['id']}/versions/{number}"
        version = self._get(where)
        files = self._files(version)
        directory = _cache() / _digest(files)
        if not directory.is_dir():
            self._download(f"{where}/archive", files, directory)
        return RegisteredModel(name, directory, self._agent(version))

    def _model_named(self, name: str) -> dict[str, Any]:
        matches = [model for model in self._models(name) if model["name"] == name]
        if not matches:
            raise self._error(f"the token sees no model {name}")
        if len(matches) > 1:
            projects = ", ".join(str(model["project"]) for model in matches)
            raise self._error(f"several projects have one ({projects}): use a token of one project")
        return matches[0]

    def _models(self, name: str) -> Iterator[dict[str, Any]]:
        cursor: dict[str, Any] = {}
        while cursor is not None:
            page = self._get("/models", name=name, **cursor)
            yield from page["models"]
            cursor = {"cursor": page["next"]} if page["next"] is not None else None

    def _agent(self, version: dict[str, Any]) -> dict[str, Any] | None:
        if version["run"] is None:
            return None
        agents = self._get(f"/runs/{version['run']}")["config"]["agents"]
        return next((one for one in agents if one["name"] == version["agent"]), None)

    def _files(self, version: dict[str, Any]) -> dict[str, tuple[int, str]]:
        """Returns size and SHA-256 of each of the version's files, by name."""
        files = {
            one["name"]: (one["size"], one["sha256"])
            for one in version["files"]
            if one["name"] != _README
        }
        if not files or not all(_FILE_NAME.fullmatch(name) for name in files):
            raise self._error(f"the server lists no files that a model has: {sorted(files)[:5]}")
        return files

    def _download(self, where: str, files: dict[str, tuple[int, str]], target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=target.parent))
        try:
            with tempfile.TemporaryFile(dir=draft) as packed:
                self._fetch(where, packed, sum(size for size, _ in files.values()))
                with zipfile.ZipFile(packed) as archive:
                    for name, (size, sha256) in files.items():
                        self._unpack(archive, name, draft / name, size, sha256)
            if not target.is_dir():  # otherwise another process was faster
                draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _fetch(self, where: str, packed: IO[bytes], size: int) -> None:
        most = size + (8 << 20)  # headers of archive members, and the model card
        with self.client.stream("GET", where) as response:
            self._refuse(response)
            for block in response.iter_bytes(_BLOCK):
                if packed.tell() + len(block) > most:
                    raise self._error(f"the server sends more than the {size:,} bytes it lists")
                packed.write(block)

    def _unpack(
        self, archive: zipfile.ZipFile, name: str, target: Path, size: int, sha256: str
    ) -> None:
        if name not in archive.namelist():
            raise self._error(f"{name} is missing in what the server sent; try again")
        digest, left = hashlib.sha256(), size
        with archive.open(name) as member, target.open("xb") as file:
            while block := member.read(min(_BLOCK, left + 1)):
                digest.update(block)
                left -= len(block)
                if left < 0:
                    break
                file.write(block)
        if left or digest.hexdigest() != sha256:
            raise self._error(f"{name} is not the file that the server lists; try again")

    def _get(self, where: str, **query: Any) -> Any:
        response = self.client.get(where, params=query)
        self._refuse(response)
        return response.json()

    def _refuse(self, response: httpx.Response) -> None:
        if response.is_success:
            return
        response.read()
        raise self._error(
            f"{response.request.url.path} is answered with {response.status_code} "
            f"{response.text[:200]!r}; check GROVE_TOKEN: it needs to read models and runs"
        )

    def _error(self, reason: str) -> ValueError:
        return ValueError(f"{self.reference}: {reason}")


def _cache() -> Path:
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError as error:  # no HOME, and an account that the system does not know
        raise ValueError(f"{error} Set XDG_CACHE_HOME to a folder for models.") from None
    return Path(home) / "grove" / "models"


def _digest(files: dict[str, tuple[int, str]]) -> str:
    digest = hashlib.sha256()
    for name, (size, sha256) in sorted(files.items()):
        digest.update(f"{name} {size} {sha256}\n".encode())
    return digest.hexdigest()
