"""The one exception of backups: a sentence for the operator, with its remedy."""

from __future__ import annotations


class BackupError(RuntimeError):
    """A backup cannot be made, read or restored. Nothing was changed, or all of it was undone."""
