"""Cores of this machine, as far as this process may use them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

from engine.resources.control_groups import CGROUPS, MEMBERSHIP, ControlGroup, own_groups


def machine_cores(groups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> int:
    """Returns how many cores this process may use, at least 1: those of its affinity (a cpuset, a
    job of Slurm), or fewer if a control group that holds it limits its CPU time (a container's
    quota, rounded up)."""
    affine = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    quotas = (math.ceil(quota) for quota in _quotas(groups, membership))
    return max(1, min([affine, *quotas]))


def _quotas(groups: Path, membership: Path) -> Iterator[float]:
    """Yields the limits in cores of the groups of this process and of all above them."""
    for group in own_groups("cpu", groups, membership):
        quota, period = _quota_and_period(group)
        # Version 2 writes `max` for no limit, version 1 a negative number.
        if quota.isdecimal() and period.isdecimal() and int(period):
            yield int(quota) / int(period)


def _quota_and_period(group: ControlGroup) -> tuple[str, str]:
    """Returns the microseconds of CPU time that a group has in each period of so many."""
    if group.version == 1:
        return group.read("cpu.cfs_quota_us"), group.read("cpu.cfs_period_us")
    quota, _, period = group.read("cpu.max").partition(" ")
    return quota, period
