"""Switch of this process to the embedded database, which starts after settings were read."""

from __future__ import annotations

import os
from pathlib import Path

from django.conf import settings
from django.db import connections

from webapp.config.environment import database

URL_FILE = "postgres.url"


def switch_database(url: str, var: Path) -> None:
    """Sets the database of this process to `url`, and stores it in `var/postgres.url` for processes
    that start later."""
    file = os.open(var / URL_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "w") as stream:
        stream.write(url)
    parameters = database(url)
    connections["default"].close()
    settings.DATABASES["default"].update(parameters)
    connections["default"].settings_dict.update(parameters)
