"""References `hf:ORG/NAME@REVISION` and the commits that they are resolved to."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from engine.config.locations import HUB

_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,95}"
_REFERENCE = re.compile(rf"({_NAME}/{_NAME})@([A-Za-z0-9][A-Za-z0-9._/-]{{0,199}})")
_COMMIT = re.compile(r"[0-9a-f]{40}")


class HubError(ValueError):
    """A reference that cannot be used; names repository, revision, endpoint and remedy."""


class RepoType(StrEnum):
    """Kind of repository; the values are the client's."""

    MODEL = "model"
    DATASET = "dataset"


@dataclass(frozen=True, slots=True)
class HubReference:
    """A repository of a hub at a revision."""

    repo_type: RepoType
    repository: str
    """`ORG/NAME`."""
    revision: str
    """A branch, a tag or a commit."""

    @property
    def is_commit(self) -> bool:
        """Whether the revision is a whole commit, which never changes."""
        return _COMMIT.fullmatch(self.revision) is not None

    def at(self, commit: str) -> HubReference:
        """Returns the reference to a commit of the same repository."""
        return replace(self, revision=commit)

    def __str__(self) -> str:
        return f"{HUB}{self.repository}@{self.revision}"


def is_hub(reference: str) -> bool:
    """Returns whether this names a repository of a hub, however badly written."""
    return reference.startswith(HUB)


def parse(reference: str, repo_type: RepoType) -> HubReference:
    """Returns the parts of `hf:ORG/NAME@REVISION`.

    Raises:
        HubError: it has another form.
    """
    matched = _REFERENCE.fullmatch(reference.removeprefix(HUB))
    if not matched or ".." in reference or not _is_repository(matched[1]):
        raise HubError(
            f"{reference}: write {HUB}ORG/NAME@REVISION, with a branch, a tag or a commit as "
            f"REVISION, such as {HUB}ORG/NAME@main"
        )
    return HubReference(repo_type, matched[1], matched[2])


def _is_repository(name: str) -> bool:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True
