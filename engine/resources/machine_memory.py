"""Memory of this machine, as far as this process may use it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

VARIABLE = "GROVE_ENGINE_MEMORY_MIB"
CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def machine_memory(groups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> int:
    """Returns the bytes of memory that this process may use: the machine's, or those of the
    smallest control group that holds it (a container's limit)."""
    return min([psutil.virtual_memory().total, *_limits(groups, membership)])


def engine_memory(environment: Mapping[str, str] = os.environ) -> int:
    """Returns the bytes of memory that an engine may use: what the operator of the machine set, if
    that is less than the machine's."""
    text = environment.get(VARIABLE, "")
    here = machine_memory()
    return min(here, int(text) << 20) if text.isascii() and text.isdecimal() else here


def _limits(groups: Path, membership: Path) -> Iterator[int]:
    """Yields the limits of the groups of this process and of all above them; version 1 and 2."""
    try:
        lines = membership.read_text("utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if not controllers:
            root, file = groups, "memory.max"
        elif "memory" in controllers.split(","):
            root, file = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = root / name.strip("/")
        # In a container the own group may be mounted as the root, under another name.
        for folder in (group, *group.parents[: len(group.parts) - len(root.parts)]):
            try:
                text = (folder / file).read_text("ascii").strip()
            except OSError:
                continue
            if text.isdecimal():  # version 2 writes `max` for no limit, version 1 a huge number
                yield int(text)
