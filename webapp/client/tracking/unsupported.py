"""W&B's calls that Grove does not have.

What a program needs the result of is refused at once, with the remedy. Of what would only keep a
file a sentence says once that it does not, and the training goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any

from webapp.client.tracking.errors import Error
from webapp.client.tracking.sender import say

FILES = (
    "files stay where the program writes them; a model in the format of transformers is kept by: "
    "grove push-model"
)
"""What is said for calls that would keep files."""


class NotSupported(Error, RuntimeError):
    """Raised by a call of W&B's that Grove does not have; names it and the remedy."""


def refuser(name: str, remedy: str) -> Callable[..., Any]:
    """Returns a function that refuses every call."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise NotSupported(f"grove.{name} does not exist: {remedy}")

    refuse.__name__ = refuse.__qualname__ = name.rpartition(".")[-1]
    refuse.__doc__ = f"Raises `NotSupported`: {remedy}."
    return refuse


class Artifact:
    """W&B's description of files. Nothing of it is kept; `log_artifact` says so once."""

    def __init__(self, name: str, type: str = "", description: str | None = None,
                 metadata: Any = None, **_: Any):  # fmt: skip
        self.name, self.type, self.description = name, type, description
        self.metadata = dict(metadata or {})
        self.aliases: list[str] = []
        self.tags: list[str] = []
        self.qualified_name = self.source_name = name
        self.ttl: Any = None

    id = url = digest = version = source_version = commit_hash = entity = project = None
    created_at = updated_at = history_step = None
    state = "PENDING"
    size = file_count = 0

    def add_file(self, *_: Any, **__: Any) -> None:
        """Does nothing."""

    add_dir = add_reference = add = remove = save = add_file
    finalize = link = unlink = delete = add_file

    def is_draft(self) -> bool:
        return True

    def files(self, *_: Any, **__: Any) -> list[Any]:
        return []

    used_by = linked_artifacts = files
    download = checkout = refuser("Artifact.download", "read the files from where they are")
    get = get_entry = get_path = file = refuser("Artifact.get", "keep what the program has made")

    @contextmanager
    def new_file(self, name: str, mode: str = "w", encoding: str | None = None) -> Iterator[Any]:
        """Yields a file that is deleted at the end."""
        binary = "b" in mode
        chosen = ("w+b", None) if binary else ("w+", encoding)
        with TemporaryFile(chosen[0], encoding=chosen[1]) as file:
            yield file

    def wait(self, *_: Any, **__: Any) -> Artifact:
        return self


class ArtifactTTL:
    """W&B's names for how long an artifact is kept."""

    INHERIT = None


class Settings:
    """W&B's settings of its client, by name: accepted; what a run is, `init` reads of them. One
    that was not given is None."""

    def __init__(self, *_: Any, **given: Any):
        self.__dict__.update(given)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # how Python copies it
            raise AttributeError(name)
        return None


class Metric:
    """What a call of `define_metric` has said, by W&B's names."""

    def __init__(self, name: str, step_metric: str | None = None, step_sync: bool | None = None,
                 hidden: bool | None = None, summary: Any = None, goal: str | None = None,
                 **_: Any):  # fmt: skip
        self.name, self.step_metric, self.step_sync = name, step_metric, step_sync
        self.hidden, self.summary, self.goal = hidden, summary, goal


class _TensorBoard:
    """W&B's module of this name."""

    @staticmethod
    def patch(*_: Any, **__: Any) -> None:
        """Says how TensorBoard's files are followed."""
        say(TENSORBOARD)

    unpatch = patch


tensorboard = _TensorBoard
TENSORBOARD = "sync_tensorboard: not followed here; use: grove import-tensorboard FOLDER --follow"
