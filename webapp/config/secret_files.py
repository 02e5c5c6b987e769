"""Secrets that a file contains: `GROVE_SECRET_KEY_FILE=/run/secrets/secret_key`.

Container platforms and service managers mount secrets as files, which no list of processes or of a
container's variables shows.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path

from engine.config.secrets import bare
from webapp.config.environment import SettingError

SECRETS = (
    "DATABASE_URL", "BROKER_URL", "GROVE_SECRET_KEY", "GROVE_METRICS_TOKEN", "GROVE_MAIL_URL",
    "GROVE_OIDC_SECRET", "GROVE_S3_KEY", "GROVE_S3_SECRET",
)  # fmt: skip
"""Variables whose value may come from the file that NAME_FILE names."""
MAX_BYTES = 65_536
"""The largest secret of one mount on the platforms that have a limit is far smaller."""


def read_secret_files(env: MutableMapping[str, str]) -> None:
    """Replaces each NAME_FILE by NAME with the text of that file, and removes what is no part of a
    secret around each one (`engine.config.secrets.bare`), however it was given.

    Child processes inherit the value, and no file that they would have to read again.

    Raises:
        SettingError: NAME is set as well, or the file is missing, unreadable, empty, larger than
            `MAX_BYTES`, or has a NUL character or several lines.
    """
    for name in SECRETS:
        variable = f"{name}_FILE"
        if not (file := env.get(variable, "")):
            continue
        if env.get(name):
            raise SettingError(variable, file, f"{name} is set, too; unset one of them")
        env[name] = _text(variable, file)
        del env[variable]
    for name in SECRETS:
        if name in env and (value := bare(env[name])) != env[name]:
            env[name] = value


def _text(variable: str, file: str) -> str:
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
        text = bare(content.decode("utf-8"))
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or "its text is not UTF-8"
        raise SettingError(
            variable, file, f"name a file that this account can read ({cause})"
        ) from None
    if not text or len(content) > MAX_BYTES or any(char in text for char in "\0\r\n"):
        name = variable.removesuffix("_FILE")
        raise SettingError(variable, file, f"the file must contain one line, the value of {name}")
    return text
