"""Local server with the part of a Hugging Face hub's API that `huggingface_hub` uses.

Repositories, commits, branches, Git LFS and tokens are in memory. It has no Xet storage: clients
need HF_HUB_DISABLE_XET=1. Responses are those of huggingface.co: status, `X-Error-Code`, ETag and
`X-Repo-Commit` (https://huggingface.co/docs/hub/api).
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.helpers.waiting import patience

LARGE = (".safetensors", ".parquet", ".bin", ".jsonl")
TOKEN = "hf_of_a_member_of_the_forest"
MEMBER = "forest"
"""Whose token it is; it may write to repositories of this name."""


@dataclass
class Repository:
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """Files by path, of each commit."""
    branches: dict[str, str] = field(default_factory=dict)
    private: bool = False
    gated: bool = False
    messages: list[str] = field(default_factory=list)

    def commit(self, files: Mapping[str, bytes], message: str = "", branch: str = "main") -> str:
        parent = self.branches.get(branch, "")
        named = [(name, hashlib.sha256(data).hexdigest()) for name, data in sorted(files.items())]
        oid = hashlib.sha1(repr((parent, message, named)).encode()).hexdigest()
        self.commits[oid] = dict(files)
        self.branches[branch] = oid
        self.messages.append(message)
        return oid

    def at(self, revision: str) -> str | None:
        return self.branches.get(revision) or (revision if revision in self.commits else None)


@dataclass
class Hub:
    """A running server. `requests` are (method, path, token) of all that it received."""

    address: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    """By `models/ORG/NAME` or `datasets/ORG/NAME`."""
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    large: dict[str, bytes] = field(default_factory=dict)
    """Uploaded LFS objects, by SHA-256."""
    damaged: set[str] = field(default_factory=set)
    """Paths that are sent with one byte changed."""

    def add(self, name: str, files: Mapping[str, bytes], **options) -> Repository:
        """Adds a repository with one commit; `name` as in `repositories`."""
        repository = Repository(**options)
        repository.commit(files, "first")
        self.repositories[name] = repository
        return repository

    def environment(self, home: Path, token: str = "") -> dict[str, str]:
        """Variables of a client of this server, with its own cache."""
        return {
            "GROVE_HUB": "1",
            "HF_ENDPOINT": self.address,
            "HF_HOME": str(home),
            "HF_TOKEN": token,
            "HF_HUB_DISABLE_XET": "1",
        }

    def downloaded(self) -> set[str]:
        """Names of files whose content was requested."""
        paths = [path for method, path, _ in self.requests if method == "GET"]
        return {path.rpartition("/")[2] for path in paths if "/resolve/" in path or "/lfs/" in path}


@contextmanager
def a_hub() -> Iterator[Hub]:
    """Runs a server on a free port of the loopback interface."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10 * patience())


def folder_contents(folder: Path) -> dict[str, bytes]:
    """Content of all files below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _oid(path: str, data: bytes) -> str:
    """What identifies a file's content for a client that has it: of a large one, its SHA-256."""
    return _sha256(data) if path.endswith(LARGE) else _blob_id(data)


class _Error(Exception):
    def __init__(self, status: int, code: str = "", message: str = ""):
        self.status, self.code, self.message = status, code, message


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_) -> None:
        pass

    def _handle(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            self.body = b"".join(self._chunks())
        path = unquote(urlsplit(self.path).path)
        self.token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.hub.requests.append((self.command, path, self.token))
        try:
            if self.token not in ("", TOKEN):
                raise _Error(401, message="Invalid credentials in Authorization header")
            self._route(path.strip("/").split("/"))
        except _Error as error:
            headers = {"X-Error-Code": error.code, "X-Error-Message": error.message}
            self._send(error.status, {"error": error.message}, headers)

    do_GET = do_HEAD = do_POST = do_PUT = _handle

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _route(self, parts: list[str]) -> None:
        match self.command, parts:
            case "GET", ["api", "whoami-v2"]:
                self._require_token()
                self._send(200, {"type": "user", "name": MEMBER, "auth": {"type": "access_token"}})
            case "POST", ["api", "validate-yaml"]:
                self._send(200, {"warnings": [{"message": "empty metadata"}], "errors": []})
            case "POST", ["api", "repos", "create"]:
                self._create(json.loads(self.body))
            case "GET", ["api", kind, org, name]:
                self._info(f"{kind}/{org}/{name}", "main")
            case "GET", ["api", kind, org, name, "revision", *revision]:
                self._info(f"{kind}/{org}/{name}", "/".join(revision))
            case "GET", ["api", kind, org, name, "tree", *revision]:
                self._tree(f"{kind}/{org}/{name}", "/".join(revision))
            case "POST", ["api", kind, org, name, "preupload", revision]:
                self._preupload(f"{kind}/{org}/{name}", revision)
            case "POST", ["api", kind, org, name, "commit", revision]:
                self._commit(f"{kind}/{org}/{name}", revision)
            case "POST", [*at, "info", "lfs", "objects", "batch"]:
                self._batch("/".join(at).removesuffix(".git"))
            case "PUT", ["lfs", oid]:
                if _sha256(self.body) != oid:
                    raise _Error(400, message="another content than announced")
                self.hub.large[oid] = self.body
                self._send(200, {})
            case "GET" | "HEAD", ["lfs", oid, name]:
                self._content(name, self.hub.large[oid])
            case "GET" | "HEAD", ["datasets", org, name, "resolve", revision, *path]:
                self._resolve(f"datasets/{org}/{name}", revision, path)
            case "GET" | "HEAD", [org, name, "resolve", revision, *path]:
                self._resolve(f"models/{org}/{name}", revision, path)
            case _:
                raise _Error(404, message=f"no such endpoint: {self.command} {self.path}")

    def _repository(self, name: str, write: bool = False) -> Repository:
        repository = self.hub.repositories.get(name)
        if repository is None or (repository.private and not self.token):
            status = 404 if self.token else 401
            raise _Error(status, "RepoNotFound", "Repository not found")
        if write:
            self._require_token()
            if name.split("/")[1] != MEMBER:
                raise _Error(403, message="You don't have the rights")
        return repository

    def _require_token(self) -> None:
        if not self.token:
            raise _Error(401, message="Invalid username or password.")

    def _at(self, repository: Repository, revision: str) -> str:
        commit = repository.at(revision)
        if commit is None:
            raise _Error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return commit

    def _info(self, name: str, revision: str) -> None:
        repository = self._repository(name)
        commit = self._at(repository, revision)
        names = [{"rfilename": path} for path in repository.commits[commit]]
        about = {"private": repository.private, "gated": "manual" if repository.gated else False}
        self._send(200, {"id": name.split("/", 1)[1], "sha": commit, "siblings": names, **about})

    def _tree(self, name: str, revision: str) -> None:
        repository = self._repository(name)
        entries = []
        for path, data in repository.commits[self._at(repository, revision)].items():
            entry = {"type": "file", "path": path, "size": len(data), "oid": _blob_id(data)}
            if path.endswith(LARGE):
                entry["lfs"] = {"oid": _sha256(data), "size": len(data), "pointerSize": 134}
            entries.append(entry)
        self._send(200, entries)

    def _resolve(self, name: str, revision: str, path: list[str]) -> None:
        repository, file = self._repository(name), "/".join(path)
        commit = self._at(repository, revision)
        if repository.gated:
            raise _Error(403 if self.token else 401, "GatedRepo", "Access is restricted")
        data = repository.commits[commit].get(file)
        if data is None:
            raise _Error(404, "EntryNotFound", "Entry not found")
        headers = {"X-Repo-Commit": commit}
        if not file.endswith(LARGE):
            self._content(file, data, headers | {"ETag": f'"{_blob_id(data)}"'})
            return
        oid = _sha256(data)
        self.hub.large[oid] = data
        headers |= {"X-Linked-Etag": f'"{oid}"', "X-Linked-Size": str(len(data))}
        # Another host, as the storage of a real hub is: a client sends no token there.
        storage = self.hub.address.replace("127.0.0.1", "localhost")
        headers["Location"] = f"{storage}/lfs/{oid}/{path[-1]}"
        self._send(302, {}, headers)

    def _content(self, name: str, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        if name in self.hub.damaged:
            data = bytes([data[0] ^ 1]) + data[1:]
        self._send(200, data, headers or {})

    def _create(self, request: dict) -> None:
        self._require_token()
        org = request["organization"] or MEMBER
        if org != MEMBER:
            raise _Error(403, message="You don't have the rights")
        kind = f"{request.get('type') or 'model'}s"
        name = f"{kind}/{org}/{request['name']}"
        url = {"url": f"{self.hub.address}/{name.removeprefix('models/')}"}
        if name in self.hub.repositories:
            self._send(409, {"error": "You already created this repo", **url})
            return
        private = request.get("visibility") == "private" or bool(request.get("private"))
        self.hub.add(name, {".gitattributes": b"*.safetensors filter=lfs\n"}, private=private)
        self._send(200, url)

    def _preupload(self, name: str, revision: str) -> None:
        repository = self._repository(name, write=True)
        held = repository.commits[self._at(repository, revision)]
        self._send(200, {"files": [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith(LARGE) else "regular",
                "shouldIgnore": False,
                "oid": _oid(file["path"], held[file["path"]]) if file["path"] in held else None,
            }
            for file in json.loads(self.body)["files"]
        ]})  # fmt: skip

    def _batch(self, at: str) -> None:
        self._repository(at if at.startswith("datasets/") else f"models/{at}", write=True)
        objects = []
        for one in json.loads(self.body)["objects"]:
            if one["oid"] not in self.hub.large:
                href = f"{self.hub.address}/lfs/{one['oid']}"
                one = {**one, "actions": {"upload": {"href": href, "header": {}}}}
            objects.append(one)
        self._send(200, {"transfer": "basic", "objects": objects})

    def _commit(self, name: str, revision: str) -> None:
        repository = self._repository(name, write=True)
        files = dict(repository.commits[self._at(repository, revision)])
        message = ""
        for line in self.body.splitlines():
            operation = json.loads(line)
            key, value = operation["key"], operation["value"]
            if key == "header":
                message = value["summary"]
            elif key == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif key == "lfsFile":
                if value["oid"] not in self.hub.large:
                    raise _Error(400, message="an LFS object was not uploaded")
                files[value["path"]] = self.hub.large[value["oid"]]
            elif key == "deletedFile":
                del files[value["path"]]
        oid = repository.commit(files, message, revision)
        url = f"{self.hub.address}/{name.removeprefix('models/')}/commit/{oid}"
        self._send(200, {"success": True, "commitOid": oid, "commitUrl": url, "hookOutput": ""})

    def _send(self, status: int, content, headers: Mapping[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for key, value in (headers or {}).items():
            if value:
                self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
