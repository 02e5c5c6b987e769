"""A tiny GGUF file, and an index that serves wheels that hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.policy.packages.catalogue import Catalogue, catalogue, tiny_gguf
from tests.helpers.package_index import Index, package_index


@pytest.fixture(scope="session")
def gguf(tmp_path_factory) -> bytes:
    return tiny_gguf(tmp_path_factory.mktemp("gguf"))


@pytest.fixture
def offer(tmp_path: Path, gguf: bytes, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Catalogue]:
    """A function that makes this process's catalogue; the arguments are those of `catalogue`."""

    def make(**options: Any) -> Catalogue:
        made = catalogue(tmp_path, options.pop("gguf", gguf), **options)
        monkeypatch.setenv("GROVE_PRETRAINED", str(made.file))
        monkeypatch.setenv("GROVE_MODELS_DIR", str(tmp_path / "models"))
        return made

    return make


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """The index that pip uses; it serves the wheels of `offer`."""
    with package_index(tmp_path / "wheels") as served:
        for name, value in served.environment().items():
            monkeypatch.setenv(name, value)
        yield served
