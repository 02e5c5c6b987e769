"""Download of one commit of a repository into the client's cache (HF_HOME).

A commit that lies there complete needs no request. Each new file is compared with the digest that
the repository lists for it. Waits: the client's own, 10 s for a response (HF_HUB_ETAG_TIMEOUT,
HF_HUB_DOWNLOAD_TIMEOUT), with at most five repetitions.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.hub.access import endpoint, one_sentence, require_switch, shown_endpoint
from engine.hub.reference import HubError, HubReference, RepoType, parse

if TYPE_CHECKING:  # most commands use no hub
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

MODEL_FILES = (
    "*.safetensors", "model.safetensors.index.json", "config.json", "generation_config.json",
    "adapter_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "vocab.json", "merges.txt", "chat_template.jinja", "lineage.json",
    "LICENSE.txt",
)  # fmt: skip
"""Files of a model that are downloaded."""
NO_MODEL_FILES = ("*/*", "consolidated*")
"""Of these, what is left out: other layouts of the same weights."""
DATASET_FILES = tuple(
    f"*.{kind}{packed}"
    for kind in ("jsonl", "json", "ndjson", "parquet", "arrow")
    for packed in ("", ".gz", ".zst")
)
"""Files of a data set that are downloaded: those in which `engine.problems` looks for rows."""
_BLOCK = 1 << 20


def resolved(reference: HubReference) -> HubReference:
    """Returns the reference with its branch or tag replaced by the commit that it names now.

    Raises:
        HubError: the hub is switched off or cannot be reached, or has no such revision.
    """
    require_switch(reference)
    return reference if reference.is_commit else _commit_of(reference)


def snapshot(reference: HubReference) -> Path:
    """Returns the folder of the commit that a reference names; downloads what is not cached.

    Raises:
        HubError: the hub is switched off or cannot be reached, has no such commit, or sent a file
            that differs from what it lists.
    """
    at = resolved(reference)
    if folder := cached(at):
        return folder
    if reference.is_commit:
        _commit_of(reference)  # without the client's repetitions: a hub that is down fails here
    from huggingface_hub import snapshot_download
    from huggingface_hub.hf_api import RepoFile
    from huggingface_hub.utils import disable_progress_bars

    with one_sentence(reference):
        listed = _api().list_repo_tree(
            at.repository, repo_type=at.repo_type, revision=at.revision, recursive=True
        )
        files = {entry.path: entry for entry in listed if isinstance(entry, RepoFile)}
        with nullcontext() if sys.stderr.isatty() else disable_progress_bars():
            # B615: `at` is a commit.
            folder = Path(snapshot_download(**_request(at), endpoint=endpoint()))  # nosec B615
    if not folder.is_dir():
        names = ", ".join(_patterns(at)["allow_patterns"])
        raise HubError(f"{reference}: {shown_endpoint()} lists none of {names} for it")
    _verify(reference, folder, files)
    return folder


def _commit_of(reference: HubReference) -> HubReference:
    with one_sentence(reference):
        sha = _api().repo_info(
            reference.repository, repo_type=reference.repo_type, revision=reference.revision
        ).sha  # fmt: skip
    at = reference.at(sha or "")
    if not at.is_commit:
        raise HubError(f"{reference}: {shown_endpoint()} names {sha!r}, which is not a commit")
    return at


def cached(reference: HubReference) -> Path | None:
    """Returns the folder of a commit in the cache if all its files are there, without a request;
    else None."""
    from huggingface_hub import get_cached_repo_tree, snapshot_download
    from huggingface_hub.errors import CachedRepoTreeNotFoundError, LocalEntryNotFoundError

    request = _request(reference)
    try:
        # Without a listing nobody knows whether the folder is complete.
        get_cached_repo_tree(
            request["repo_id"], repo_type=request["repo_type"], revision=request["revision"]
        )
        return Path(snapshot_download(**request, local_files_only=True))  # nosec B615
    except (CachedRepoTreeNotFoundError, LocalEntryNotFoundError):
        return None


def cached_model(reference: str) -> Path | None:
    """Returns the folder of `hf:ORG/NAME@COMMIT` as `cached` does; None also for any other text."""
    try:
        return cached(parse(reference, RepoType.MODEL))
    except HubError:
        return None


def _request(reference: HubReference) -> dict[str, Any]:
    return {
        "repo_id": reference.repository,
        "repo_type": reference.repo_type.value,
        "revision": reference.revision,
        **_patterns(reference),
    }


def _patterns(reference: HubReference) -> dict[str, list[str]]:
    if reference.repo_type is RepoType.MODEL:
        return {"allow_patterns": [*MODEL_FILES], "ignore_patterns": [*NO_MODEL_FILES]}
    return {"allow_patterns": [*DATASET_FILES], "ignore_patterns": [".*", "*/.*"]}


def _api() -> HfApi:
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint())


def _verify(reference: HubReference, folder: Path, files: Mapping[str, RepoFile]) -> None:
    """Raises `HubError` for a file that is not the listed one, after removing it from the cache."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        listed = files.get(name)
        if listed is not None and _digest(path, listed) != (
            listed.lfs.sha256 if listed.lfs else listed.blob_id
        ):
            blob = path.resolve()
            path.unlink()
            blob.unlink(missing_ok=True)
            raise HubError(
                f"{reference}: {name} is not the file that {shown_endpoint()} lists; try again"
            )


def _digest(path: Path, listed: RepoFile) -> str:
    """Returns the SHA-256 of a large file, else the id of its git blob, as hexadecimal."""
    if listed.lfs:
        digest = hashlib.sha256()
    else:
        digest = hashlib.sha1(usedforsecurity=False)
        digest.update(f"blob {path.stat().st_size}\0".encode())
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
