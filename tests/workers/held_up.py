"""Script: `manage.py up`, held in a step. Arguments: STEP FOLDER.

In the step whose name begins with STEP it makes FOLDER/held, and goes on when FOLDER/go is there.
"""

import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import django

from webapp.manage import main
from workers.local.progress import Progress

HELD, GO = "held", "go"


def hold(kind, step, folder):
    """Makes the steps of this class wait within, as if what they do took so long."""
    original = kind.step

    @contextmanager
    def held(self, name):
        with original(self, name):
            if name.startswith(step):
                (folder / HELD).touch()
                while not (folder / GO).exists():
                    time.sleep(0.02)
            yield

    kind.step = held


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
    django.setup()
    from workers.local.supervisor import Supervisor

    # The supervisor's steps are those that need Postgres.
    kind = Progress if sys.argv[1] == "Starting Postgres" else Supervisor
    hold(kind, sys.argv[1], Path(sys.argv[2]))
    main(["manage.py", "up"])
