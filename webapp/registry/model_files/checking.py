"""Checks of a model's files in a process with limits: `python -m
webapp.registry.model_files.checking < JOB`.

A header of 31 MB of JSON takes some 800 MiB once parsed, a tokenizer more: neither is parsed in a
process that serves requests.

JOB: {"files": [{"name", "path"}], "out", and the limits of `limited_process`}. `out` then holds
{"layout": {...}} or {"refusal": [file, what, remedy]}.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from webapp.limited_process import Queue, exit_status_of, limit_self, run_limited
from webapp.registry.model_files.layout import Layout, ModelFile, check_model, refuse_names
from webapp.registry.model_files.safetensors import WeightsError

if TYPE_CHECKING:
    from webapp.accounts.models import User
    from webapp.projects.models import Project

QUEUE = Queue("models", lock=0x6D6F_6465, slots=2)
"""So many models are checked at once by all web processes and workers together."""
_OUT_BYTES = 1 << 20


def checked(
    paths: Mapping[str, Path], project: Project, user: User | None, work: Sequence[object]
) -> Layout:
    """Checks the files of a model, given as path by name, in turn, and returns its layout. `work`
    identifies the check while it waits.

    Raises:
        WeightsError: the first fault, or that the check exceeds its limits.
        Queued: it is not its turn.
    """
    from webapp.projects.turns import in_turn  # the process itself has no Django

    return _checked(paths, in_turn(QUEUE, project.workspace, user, work))


def checked_now(paths: Mapping[str, Path]) -> Layout:
    """Checks the files of a model for the server's operator, who waits for no turn.

    Raises:
        WeightsError: as `checked`.
    """
    return _checked(paths, nullcontext())


def _checked(paths: Mapping[str, Path], turn: AbstractContextManager[None]) -> Layout:
    """Checks the files; `turn` is held while the process is at work."""
    from django.conf import settings

    from engine.config.deadlines import MODEL_CHECK

    refuse_names(list(paths))
    settings.UPLOADS_DIR.mkdir(parents=True, exist_ok=True)
    limits = {"seconds": settings.MODEL_CHECK_SECONDS, "memory_bytes": settings.MODEL_CHECK_BYTES}
    files = [{"name": name, "path": str(path)} for name, path in paths.items()]
    with tempfile.TemporaryDirectory(prefix="checking-", dir=settings.UPLOADS_DIR) as folder:
        out = Path(folder) / "result.json"
        job = {"files": files, "out": str(out), "most_bytes": _OUT_BYTES, **limits}
        with turn:
            done = run_limited("webapp.registry.model_files.checking", job)
        if not done or not out.exists():
            what = (
                f"checking takes more than {limits['seconds']} s or "
                f"{limits['memory_bytes'] >> 20} MiB of memory"
            )
            remedy = f"give a model whose headers and texts are smaller; {MODEL_CHECK.remedy}"
            raise WeightsError("files", what, remedy)
        result = json.loads(out.read_text())
    if "refusal" in result:
        raise WeightsError(*result["refusal"])
    layout = result["layout"]
    weights, warnings = tuple(layout["weights"]), tuple(layout["warnings"])
    return Layout(layout["architecture"], layout["parameters"], weights, warnings)


def main() -> int:
    """Checks one job. Exit status 0: checked, with the result in `out`."""
    job = json.load(sys.stdin)
    limit_self(job)
    files = [
        ModelFile(one["name"], path.stat().st_size, lambda path=path: path.open("rb"))
        for one in job["files"]
        for path in [Path(one["path"])]
    ]
    try:
        result = {"layout": asdict(check_model(files))}
    except WeightsError as error:
        result = {"refusal": [error.file, error.what[:4000], error.remedy]}
    Path(job["out"]).write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(exit_status_of(main))
