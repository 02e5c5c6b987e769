"""Typed readers of the environment: what a process may be told from outside.

Invariant: a value that comes out of here is usable. One that is not raises `SettingError`,
which names the variable, the value and the remedy, before anything starts.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

Environment = Mapping[str, str]

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
_BROKERS = ("filesystem", "redis", "rediss", "sentinel", "amqp", "amqps")
_POOL = {"min_size": 0, "max_size": 16, "timeout": 10}


class SettingError(ValueError):
    """An environment variable that cannot be used."""

    def __init__(self, name: str, value: str, remedy: str):
        super().__init__(f"{name} = {value!r}: {remedy}")


def read_flag(env: Environment, name: str, default: bool) -> bool:
    """A switch: 1/true/yes/on or 0/false/no/off."""
    value = env.get(name)
    if value is None:
        return default
    if value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    raise SettingError(name, value, "give 1 or 0")


def read_integer(env: Environment, name: str, default: int, low: int, high: int) -> int:
    """A whole number within [low, high]."""
    value = env.get(name)
    if value is None or value == "":
        return default
    if value.isascii() and value.isdigit() and low <= int(value) <= high:
        return int(value)
    raise SettingError(name, value, f"give a whole number from {low} to {high}")


def read_list(env: Environment, name: str, default: list[str]) -> list[str]:
    """Words separated by commas."""
    value = env.get(name)
    if value is None:
        return default
    return [word.strip() for word in value.split(",") if word.strip()]


def read_path(env: Environment, name: str, default: Path) -> Path:
    """A directory, made absolute; it need not exist yet."""
    value = env.get(name)
    return Path(value).expanduser().resolve() if value else default


def read_broker(env: Environment, name: str, default: str) -> str:
    """The URL of a message broker that kombu speaks to."""
    value = env.get(name) or default
    if urlsplit(value).scheme not in _BROKERS:
        raise SettingError(name, value, f"its scheme must be one of {', '.join(_BROKERS)}")
    return value


def database_url(env: Environment, var: Path) -> str:
    """DATABASE_URL, else the URL that the embedded server leaves in `var/postgres.url`.

    With neither, the place where the embedded server would listen: commands that need no
    database still run, the others fail with the socket's path in the message.
    """
    if value := env.get("DATABASE_URL"):
        return value
    left_behind = var / "postgres.url"
    if left_behind.is_file():
        return left_behind.read_text().strip()
    return f"postgresql://grove@/grove?host={var / 'postgres'}"


def database(url: str) -> dict[str, Any]:
    """Django's description of the one database that a Postgres URL names."""
    if urlsplit(url).scheme not in ("postgresql", "postgres"):
        raise SettingError("DATABASE_URL", url, "only postgresql:// is spoken here")
    try:
        parts = conninfo_to_dict(url)
    except ProgrammingError as error:
        raise SettingError("DATABASE_URL", url, str(error).strip()) from None
    named = {
        "NAME": parts.pop("dbname", ""),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "")),
    }
    if not named["NAME"]:
        raise SettingError("DATABASE_URL", url, "name the database after the last slash")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "CONN_HEALTH_CHECKS": True,  # a pooled connection may have ended with a restarted server
        **named,
        "OPTIONS": {**parts, "pool": dict(_POOL)},
    }


def secret_key(env: Environment, var: Path) -> str:
    """GROVE_SECRET_KEY, else the key in `var/secret_key`, made on first use, for us alone."""
    if value := env.get("GROVE_SECRET_KEY"):
        if len(value) < 32:
            raise SettingError("GROVE_SECRET_KEY", "...", "give at least 32 characters")
        return value
    path = var / "secret_key"
    try:
        return _stored_key(path)
    except FileNotFoundError:
        var.mkdir(parents=True, exist_ok=True)
    # Written aside and linked into place: of two processes that start at once, one key wins.
    descriptor, draft = tempfile.mkstemp(prefix=".secret_key.", dir=var)  # for us alone: 0600
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(48))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        Path(draft).unlink()
    return _stored_key(path)


def _stored_key(path: Path) -> str:
    key = path.read_text().strip()
    if len(key) < 32:
        raise SettingError("GROVE_SECRET_KEY", "...", f"{path} is damaged; delete it")
    return key
