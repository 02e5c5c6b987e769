"""Push of a version of a model or a dataset to a Hugging Face hub, with its card.

Needs the extra `hub` (the official client), and GROVE_HUB=1 or HF_ENDPOINT. Invariants: one commit
holds the whole version; each file of a model has the size and the SHA-256 that the server lists;
what others can read is written to only with `public`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from webapp.client.client import Grove
from webapp.client.connecting import bare
from webapp.client.extras import needed

if TYPE_CHECKING:  # an extra
    from huggingface_hub import HfApi

PREFIX = "hf:"
SWITCH, ENDPOINT, _TOKEN = "GROVE_HUB", "HF_ENDPOINT", "HF_TOKEN"
DEFAULT_ENDPOINT = "https://huggingface.co"
CARD, PROBLEMS = "README.md", "problems.jsonl"
_OF_A_VERSION = (".safetensors", ".json", ".jinja", ".txt", PROBLEMS)
"""Endings of files that a version may have; of an earlier push, they are removed."""
_BLOCK = 1 << 20


class HubRefused(ValueError):
    """A push that the hub or its settings do not allow; names repository, endpoint and remedy."""


def push_model(grove: Grove, model: int, number: int, repository: str, public: bool) -> str:
    """Commits all files of a model's version and its card to `ORG/NAME`, which is created, private
    unless `public`, if missing. Returns `hf:ORG/NAME@COMMIT`.

    Raises:
        NotInstalled, HubRefused: nothing was committed.
        Refused: the server has no such version, or does not show it.
    """
    target = _Target(repository, "model", public)
    with target.one_sentence():
        target.require_access()
    version, name = grove.rest.get_version(model, number), grove.rest.get_model(model).name
    with TemporaryDirectory(prefix="grove-push-hub-") as folder:
        files = {file.name: (file.size, file.sha256) for file in version.files}
        _unpack(grove.rest.get_archive(model, number), files, Path(folder))
        with target.one_sentence():
            return target.commit(Path(folder), f"{name} v{number}, from Grove")


def push_dataset(grove: Grove, version_id: int, repository: str, public: bool) -> str:
    """Commits all problems of a dataset's version, with references and private tests, and a card;
    otherwise as `push_model`."""
    target = _Target(repository, "dataset", public)
    with target.one_sentence():
        target.require_access()
    version = grove.dataset_version(version_id)
    with TemporaryDirectory(prefix="grove-push-hub-") as folder:
        with Path(folder, PROBLEMS).open("wb") as file:
            for block in grove.dataset_content(version_id):
                file.write(block)
        name = version.reference or f"dataset version {version_id}"
        rows = {"Problems": version.statistics["problems"], "Content hash": version.content_hash}
        Path(folder, CARD).write_text(_dataset_card(name, rows), "utf-8")
        with target.one_sentence():
            return target.commit(Path(folder), f"{name}, from Grove")


class _Target:
    """A repository of the hub that HF_ENDPOINT names, for one push."""

    def __init__(self, repository: str, repo_type: str, public: bool):
        self.endpoint = (os.environ.get(ENDPOINT) or DEFAULT_ENDPOINT).rstrip("/")
        self.repository, self.repo_type, self.public = repository, repo_type, public
        self._require_switch()
        if _TOKEN in os.environ:
            os.environ[_TOKEN] = bare(os.environ[_TOKEN])
        needed("huggingface_hub", "hub")
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository, re.ASCII):
            raise self._refused("write ORG/NAME")
        self.api: HfApi = _api(self.endpoint)

    def require_access(self) -> None:
        """Raises before anything is downloaded: without a valid token, or if the repository is
        public and the push is not."""
        from huggingface_hub import get_token
        from huggingface_hub.errors import RepositoryNotFoundError

        if not get_token():
            raise self._refused("a push needs a token that may write to it; set HF_TOKEN")
        self.api.whoami()
        try:
            info = self.api.repo_info(self.repository, repo_type=self.repo_type)
        except RepositoryNotFoundError:
            return
        if not info.private and not self.public:
            raise self._refused("the repository is public; add --public, or name another one")

    def commit(self, folder: Path, message: str) -> str:
        """Makes one commit of a folder's files, without the files of an earlier push that it lacks;
        returns the reference to it."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        self.api.create_repo(
            self.repository, repo_type=self.repo_type, private=not self.public, exist_ok=True
        )
        names = sorted(path.name for path in folder.iterdir())
        held = self.api.list_repo_files(self.repository, repo_type=self.repo_type)
        stale = [
            name for name in held
            if "/" not in name and name.endswith(_OF_A_VERSION) and name not in names
        ]  # fmt: skip
        operations: list[Any] = [CommitOperationDelete(name) for name in stale]
        operations += [CommitOperationAdd(name, folder / name) for name in names]
        done = self.api.create_commit(
            self.repository, operations, commit_message=message, repo_type=self.repo_type
        )
        return f"{PREFIX}{self.repository}@{done.oid}"

    @contextmanager
    def one_sentence(self) -> Iterator[None]:
        """Context in which errors of the official client become a `HubRefused` with the remedy."""
        from huggingface_hub.errors import HFValidationError, HTTPError, OfflineModeIsEnabled
        from huggingface_hub.utils import disable_progress_bars

        try:
            with ExitStack() as stack:
                if not sys.stderr.isatty():
                    stack.enter_context(disable_progress_bars())
                stack.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")  # a card of Grove has no metadata of the hub
                yield
        except HFValidationError:
            raise self._refused("write ORG/NAME") from None
        except (HTTPError, OfflineModeIsEnabled, RuntimeError) as error:
            raise self._refused(self._reason(error)) from None

    def _reason(self, error: BaseException) -> str:
        from huggingface_hub.errors import HfHubHTTPError

        root = error
        while root.__cause__ is not None and not isinstance(root, HfHubHTTPError):
            root = root.__cause__
        if not isinstance(root, HfHubHTTPError):
            return (
                f"the hub cannot be reached ({type(root).__name__}); check the network, {ENDPOINT} "
                "and HF_HUB_OFFLINE"
            )
        status = root.response.status_code
        if status in (401, 403, 404):
            return f"the token may not write to it ({status}); set HF_TOKEN to one that may"
        detail = (root.server_message or str(root)).strip().splitlines()[0][:200]
        return f"the hub responds with status {status}: {detail}; try again later"

    def _require_switch(self) -> None:
        switch = os.environ.get(SWITCH, "")
        if switch not in ("", "0", "1"):
            raise HubRefused(f"{SWITCH} = {switch}: write 1 to use a Hugging Face hub, or 0")
        if switch == "0" or not (switch or os.environ.get(ENDPOINT)):
            raise self._refused(
                f"the hub is switched off; set {SWITCH}=1, and {ENDPOINT} for a hub of your own"
            )

    def _refused(self, reason: str) -> HubRefused:
        parts = urlsplit(self.endpoint)
        shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        return HubRefused(f"{self.repo_type} {self.repository} at {shown}: {reason}")


def _api(endpoint: str) -> HfApi:
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint)


def _unpack(blocks: Iterable[bytes], files: dict[str, tuple[int, str]], folder: Path) -> None:
    """Writes the members of a version's zip to a folder.

    Raises:
        HubRefused: they are not what the server lists.
    """
    packed = folder / "version.zip.draft"
    with packed.open("wb") as file:
        for block in blocks:
            file.write(block)
    with zipfile.ZipFile(packed) as archive:
        held = set(archive.namelist())
        if odd := sorted(held ^ {*files, CARD}):
            raise HubRefused(f"the server's archive and its list differ in {odd[0]}; try again")
        for name in sorted(held):
            if name != Path(name).name:
                raise HubRefused(f"the server's archive holds {name}, which is no file's name")
            with archive.open(name) as member, (folder / name).open("xb") as target:
                shutil.copyfileobj(member, target, _BLOCK)
    packed.unlink()
    for name, (size, sha256) in files.items():
        with (folder / name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if name != CARD and ((folder / name).stat().st_size, digest) != (size, sha256):
            raise HubRefused(f"{name} is not the file that the server lists; try again")


def _dataset_card(name: str, rows: dict[str, Any]) -> str:
    lines = "".join(f"| {key} | {value} |\n" for key, value in rows.items())
    return (
        f"# {name}\n\n| What | Value |\n| --- | --- |\n{lines}\n"
        f"`{PROBLEMS}` holds one problem per line in Grove's own format, with its reference and "
        "its private tests.\n"
    )
