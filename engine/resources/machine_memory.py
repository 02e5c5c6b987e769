"""Memory of this machine, as far as this process may use it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from engine.resources.control_groups import CGROUPS, MEMBERSHIP, own_groups

VARIABLE = "GROVE_ENGINE_MEMORY_MIB"


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
    """Yields the limits of the groups of this process and of all above them."""
    files = {1: "memory.limit_in_bytes", 2: "memory.max"}
    for group in own_groups("memory", groups, membership):
        text = group.read(files[group.version])
        if text.isdecimal():  # version 2 writes `max` for no limit, version 1 a huge number
            yield int(text)
