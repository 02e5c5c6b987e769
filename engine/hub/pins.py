"""Replacement of branches and tags in a run's settings by the commits that they name."""

from __future__ import annotations

from pathlib import Path

from engine.config.locations import Kind, Location, relocated
from engine.config.schema import RunConfig
from engine.hub.download import resolved
from engine.hub.reference import RepoType, is_hub, parse

REPO_TYPES = {Kind.MODEL: RepoType.MODEL, Kind.DATASET: RepoType.DATASET}
"""Kinds of locations that may be on a hub."""


def pinned_reference(reference: str, repo_type: RepoType) -> str:
    """Returns `hf:ORG/NAME@COMMIT` for a reference to a hub, and any other text unchanged.

    Raises:
        HubError: see `engine.hub.download.resolved`.
    """
    return str(resolved(parse(reference, repo_type))) if is_hub(reference) else reference


def pinned(config: RunConfig) -> RunConfig:
    """Returns the settings with every reference to a hub at a commit; equal references at the same
    one.

    Raises:
        HubError: see `engine.hub.download.resolved`.
    """
    commits: dict[tuple[Kind, str], str] = {}

    def at_commit(one: Location) -> str:
        key = (one.kind, one.value)
        if one.kind not in REPO_TYPES or not is_hub(one.value):
            return one.value
        if key not in commits:
            commits[key] = pinned_reference(one.value, REPO_TYPES[one.kind])
        return commits[key]

    return relocated(config, at_commit)


def pin_run(config: RunConfig, run_dir: Path) -> RunConfig:
    """Returns the settings as `pinned` does, and writes them to the run's config.json if that
    changes them: a resumed run uses the commits with which it began.

    Raises:
        HubError: see `engine.hub.download.resolved`. OSError: the file cannot be written.
    """
    at_commits = pinned(config)
    if at_commits != config:
        draft = run_dir / "config.json.draft"
        draft.write_text(at_commits.model_dump_json(indent=1))
        draft.replace(run_dir / "config.json")
    return at_commits
