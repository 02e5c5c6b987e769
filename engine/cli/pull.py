"""`python -m engine models pull` and `problems pull`: files of a Hugging Face hub in a directory.

The directory appears complete or not at all. Exit status: 0, or 2 if nothing was written.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from engine.hub.reference import HubReference, RepoType, parse

LINEAGE = "lineage.json"
"""File of a pulled model that names, under `hub`, the commit that it was pulled from."""


def add_pull(actions: Any, repo_type: RepoType, what: str) -> None:
    """Declares `pull` among the actions of a command."""
    command = actions.add_parser("pull", help=f"download {what} of a Hugging Face hub (GROVE_HUB)")
    command.add_argument("reference", metavar="hf:ORG/NAME@REVISION", help="branch, tag or commit")
    command.add_argument("directory", type=Path, metavar="DIR", help="new, or empty")
    command.add_argument("--json", action="store_true", help="one JSON object, for machines")
    command.set_defaults(run=_pull, repo_type=repo_type)


def _pull(arguments: argparse.Namespace) -> int:
    from engine.hub.download import resolved, snapshot

    target: Path = arguments.directory.absolute()
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ValueError(f"{target}: exists and is not an empty directory; name a new one")
    at = resolved(parse(arguments.reference, arguments.repo_type))
    source = _checked_model(at) if at.repo_type is RepoType.MODEL else snapshot(at)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        files = _copied(source, draft)
        if at.repo_type is RepoType.MODEL:
            _write_lineage(draft, at)
        draft.chmod(0o755)
        draft.replace(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    _print(arguments, target, at, files)
    return 0


def _checked_model(at: HubReference) -> Path:
    from engine.policy.models.load import check_model_directory

    return check_model_directory(str(at))


def _copied(source: Path, target: Path) -> dict[str, int]:
    """Copies all files below a folder; returns the size of each in bytes, by name."""
    sizes = {}
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        name = path.relative_to(source)
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / name)
        sizes[name.as_posix()] = path.stat().st_size
    return sizes


def _write_lineage(directory: Path, at: HubReference) -> None:
    from engine.hub.access import shown_endpoint

    file = directory / LINEAGE
    try:
        lineage = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        lineage = {}
    before = lineage if isinstance(lineage, dict) else {}
    hub = {"endpoint": shown_endpoint(), "repository": at.repository, "commit": at.revision}
    file.write_text(json.dumps({**before, "hub": hub}, indent=1) + "\n")


def _print(
    arguments: argparse.Namespace, target: Path, at: HubReference, files: dict[str, int]
) -> None:
    if arguments.json:
        print(json.dumps({"directory": str(target), "reference": str(at), "files": files}))
    else:
        print(f"{target}: {len(files)} files, {sum(files.values()):,} bytes of {at}")
