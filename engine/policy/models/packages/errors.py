"""Errors of the installation of a pretrained model."""

from __future__ import annotations

import errno

from engine.policy.models.load import ModelError


class InstallError(ModelError):
    """A pretrained model that cannot be installed; names the cause and the remedy."""


def of_file_system(error: OSError, folder: object) -> InstallError:
    """Returns the error of a folder that cannot be written to."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InstallError(
            f"{folder}: the disk is full; make room there, or name another folder with --to or "
            "GROVE_MODELS_DIR, and run the command again: it goes on where it stopped"
        )
    return InstallError(
        f"{error.filename or folder}: {error.strerror}; name a folder that you can write to with "
        "--to or GROVE_MODELS_DIR"
    )
