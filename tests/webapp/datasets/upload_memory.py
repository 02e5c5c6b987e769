"""Script that stores uploads as the web process does, and prints by how many MiB it grew meanwhile.

    python -m tests.webapp.datasets.upload_memory OWNER_ID dataset|MODEL_ID SMALL BIG

SMALL and BIG are ids of uploads, separated by commas. The small ones are stored first, so that what
any upload imports and allocates is there before the measurement. A process of its own has no memory
of other tests to grow into, and nobody else's threads.
"""

from __future__ import annotations

import sys
from pathlib import Path

import django

django.setup()

from webapp.accounts.models import User  # noqa: E402
from webapp.artifacts.models import Upload  # noqa: E402
from webapp.datasets.storing import add_version  # noqa: E402
from webapp.registry.model_files.imports import import_uploads  # noqa: E402
from webapp.registry.models import Model  # noqa: E402


def resident(name: str) -> int:
    """VmRSS (now) or VmHWM (the peak since its reset), in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def store(owner: User, what: str, ids: str) -> None:
    uploads = [Upload.objects.get(pk=one) for one in ids.split(",")]
    if what == "dataset":
        name = f"of {len(ids)} {uploads[0].size}"
        add_version(uploads[0].project, owner, name, [one.pk for one in uploads])
    else:
        import_uploads(Model.objects.get(pk=what), uploads, None, owner)


def main(owner_id: str, what: str, small: str, big: str) -> None:
    owner = User.objects.get(pk=owner_id)
    store(owner, what, small)
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM to VmRSS
    before = resident("VmRSS")
    store(owner, what, big)
    print((resident("VmHWM") - before) >> 20)


if __name__ == "__main__":
    main(*sys.argv[1:])
