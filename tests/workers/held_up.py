"""Script: `manage.py up`, held at the beginning of a step. Arguments: STEP FOLDER.

At the step whose name begins with STEP it makes FOLDER/held, and goes on when FOLDER/go is there.
"""

import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from webapp.manage import main
from workers.local.progress import Progress

HELD, GO = "held", "go"


def hold(step, folder):
    """Makes every `Progress` wait in its step, as if what the step does took so long."""
    timed = Progress.timed

    @contextmanager
    def held(progress, name):
        with timed(progress, name):
            if name.startswith(step):
                (folder / HELD).touch()
                while not (folder / GO).exists():
                    time.sleep(0.02)
            yield

    Progress.timed = held


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
    hold(sys.argv[1], Path(sys.argv[2]))
    main(["manage.py", "up"])
