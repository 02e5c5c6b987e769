"""Storage of the command's address and token: a file that only its owner can read.

GROVE_ADDRESS and GROVE_TOKEN, if set, take precedence over the file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

DEFAULT_ADDRESS = "http://localhost:8000"


class NotLoggedIn(Exception):
    """Raised when there is no token."""


def path() -> Path:
    """Returns `grove/login.json` in the user's settings folder."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "grove" / "login.json"


def save(address: str, token: str) -> Path:
    target = path()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"address": address, "token": token}, file)
    return target


def credentials() -> tuple[str, str]:
    """Returns (address, token). Raises `NotLoggedIn`."""
    saved = json.loads(path().read_text()) if path().is_file() else {}
    address = os.environ.get("GROVE_ADDRESS") or saved.get("address") or DEFAULT_ADDRESS
    token = os.environ.get("GROVE_TOKEN") or saved.get("token")
    if not token:
        raise NotLoggedIn("create a token under API tokens, then: grove login")
    return address, token
