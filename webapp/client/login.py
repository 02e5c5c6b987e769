"""Storage of the command's address and token: a file that only its owner can read.

GROVE_ADDRESS and GROVE_TOKEN, if set, take precedence over the file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

DEFAULT_ADDRESS = "http://localhost:8000"
_NAMES = ("address", "token")


class NotLoggedIn(Exception):
    """Raised when there is no token."""


def path() -> Path:
    """Returns `grove/login.json` in the user's settings folder. Raises `NotLoggedIn`: an account
    that the system does not know has none."""
    try:
        home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    except RuntimeError:
        raise NotLoggedIn(
            "this account has no home folder: set GROVE_ADDRESS and GROVE_TOKEN, or XDG_CONFIG_HOME"
        ) from None
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
    given = {name: os.environ.get(f"GROVE_{name.upper()}", "").strip() for name in _NAMES}
    saved = {} if all(given.values()) else _saved(is_needed=not given["token"])
    address = given["address"] or saved.get("address") or DEFAULT_ADDRESS
    token = given["token"] or saved.get("token")
    if not token:
        raise NotLoggedIn("create a token under API tokens, then: grove login")
    return address, token


def _saved(is_needed: bool) -> dict[str, str]:
    """Returns what `save` stored. Raises `NotLoggedIn`: it is needed, and there is no folder."""
    try:
        file = path()
    except NotLoggedIn:
        if is_needed:
            raise
        return {}
    return json.loads(file.read_text()) if file.is_file() else {}
