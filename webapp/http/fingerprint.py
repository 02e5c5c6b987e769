"""Fingerprint of the static files' content, which is part of their addresses.

Invariant: the same files have the same fingerprint on every machine; any change gives another. So
an address under /static/FINGERPRINT/ never mixes with what a browser cached of another version, and
the modules' own relative imports need no rewriting.
"""

from __future__ import annotations

import hashlib
from pathlib import Path


def fingerprint(directory: Path) -> str:
    """Twelve hex digits of the names and contents of all files below `directory`."""
    digest = hashlib.sha256()
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(directory).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:12]
