"""Process that checks or imports the zip of a workspace, whose request its worker has taken:
`python -m workers.jobs.workspace_import_process ID FENCING`.

Its standard output has a JSON object per line: {"progress", "phase"} as each phase begins and, with
`EXIT_REFUSED`, {"error", "is_final"}. What it creates and the end of the import are one
transaction, which a kill undoes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

EXIT_REFUSED = 2
EXIT_LOST = 3


def main(request_id: int, fencing: int) -> int:
    """Returns the exit status."""
    from webapp.errors import Refused
    from webapp.offboarding.models import ImportRequest
    from webapp.queued_imports import ImportLost

    rows = ImportRequest.objects.select_related("upload", "created_by", "into")
    one = rows.filter(pk=request_id, fencing=fencing).first()
    if one is None:
        return EXIT_LOST
    try:
        _do(one)
    except ImportLost:
        return EXIT_LOST
    except Refused as error:
        # A limit of the server, or what is here already, may be another one at the next attempt.
        _print(error=str(error), is_final=error.status == 422)
        return EXIT_REFUSED
    return 0


def _do(one: Any) -> None:
    """Checks the file unless it was checked before, and imports it once that is confirmed. Raises
    `ImportLost`, or `Refused` with the cause."""
    from functools import partial

    import msgspec

    from webapp.artifacts.store import local_path
    from webapp.offboarding.errors import ImportRefused
    from webapp.offboarding.imports import checking, services, states

    if one.upload is None or one.upload.artifact_id is None:
        raise ImportRefused(one.file, "was discarded; upload it again", 409)
    if not one.created_by.is_active:
        raise ImportRefused(one.file, f"the account {one.created_by.username} is closed", 409)
    path = local_path(one.upload.artifact_id)
    target = (path, one.created_by, one.into, one.name)
    if one.summary is None:
        summary = checking.check(*target, report=_reporter(checking.PHASES))
        if not states.record_check(one, msgspec.to_builtins(summary)):
            return
    finish = partial(states.complete, one)
    services.import_workspace(*target, report=_reporter(services.PHASES), finish=finish)


def _reporter(phases: int) -> Callable[[str], None]:
    """Returns a function that reports each of so many phases as it begins."""
    begun = iter(range(phases))
    return lambda phase: _print(progress=next(begun) / phases, phase=phase.capitalize())


def _print(**values: object) -> None:
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
    django.setup()
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
