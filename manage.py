#!/usr/bin/env python
"""The only entry point of the web side."""

import os
import sys

from django.core.management import execute_from_command_line

from webapp.environment import SettingError


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    try:
        execute_from_command_line(sys.argv)
    except SettingError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
