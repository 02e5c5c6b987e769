#!/usr/bin/env python
"""The only entry point of the web side."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db import OperationalError

from webapp.environment import SettingError


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    try:
        execute_from_command_line(sys.argv)
    except SettingError as error:
        sys.exit(str(error))
    except OperationalError as error:
        remedy = "Start Grove first (make run), or check DATABASE_URL"
        sys.exit(f"The database does not answer: {str(error).strip()}. {remedy}.")


if __name__ == "__main__":
    main()
