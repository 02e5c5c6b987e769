"""Django's commands: `python -m webapp.manage`, `grove manage`, and `manage.py` in a checkout."""

from __future__ import annotations

import os
import signal
import sys

from django.core.management import execute_from_command_line
from django.db import OperationalError

from engine.resources.child_processes import restore_sigchld
from engine.resources.loopback import except_loopback
from engine.resources.utf8 import ensure_utf8
from webapp.config.environment import SettingError
from webapp.config.installation import UP


def main(arguments: list[str]) -> None:
    """Runs the command of `arguments`, as of `sys.argv`.

    Raises:
        SystemExit: with the command's status, or with one line that says what is wrong.
    """
    ensure_utf8()
    restore_sigchld()
    except_loopback()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
    try:
        execute_from_command_line(arguments)
    except SettingError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        print("Interrupted by Ctrl-C.", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except OperationalError as error:
        remedy = f"Start Grove first ({UP}), or check DATABASE_URL"
        sys.exit(f"The database does not answer: {str(error).strip()}. {remedy}.")


if __name__ == "__main__":
    main(sys.argv)
