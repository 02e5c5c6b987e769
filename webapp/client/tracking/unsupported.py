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

    def add_file(self, *_: Any, **__: Any) -> None:
        """Does nothing."""

    add_dir = add_reference = add = remove = save = add_file

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
    """W&B's settings of its client, by name: accepted; what a run is, `init` reads of them."""

    def __init__(self, **given: Any):
        self.__dict__.update(given)
