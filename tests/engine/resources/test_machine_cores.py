"""Tests of the cores that a machine, or the container or job on it, lets this process use."""

import os
import subprocess
import sys

import pytest

from engine.resources.machine_cores import machine_cores

ALL = len(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(ALL < 2, reason="one core is never fewer")


@pytest.mark.parametrize(
    "membership, quotas, expected",
    [
        ("0::/a\n", {"a/cpu.max": "max 100000"}, ALL),
        ("0::/a\n", {"a/cpu.max": "100000 100000"}, 1),
        ("0::/a\n", {"a/cpu.max": "20000 100000"}, 1),
        ("0::/a\n", {"a/cpu.max": "101000 100000"}, 2),
        ("0::/a\n", {"a/cpu.max": "99900000 100000"}, ALL),
        ("0::/a/b\n", {"a/cpu.max": "50000 50000", "a/b/cpu.max": "max 50000"}, 1),
        ("0::/\n", {"cpu.max": "100000 100000\n"}, 1),
        ("4:cpu,cpuacct:/x\n1:name=systemd:/\n",
         {"cpu/x/cpu.cfs_quota_us": "50000", "cpu/x/cpu.cfs_period_us": "100000"}, 1),
        ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, ALL),
        ("4:memory:/\n", {"memory/cpu.cfs_quota_us": "1"}, ALL),
        ("0::/a\n", {"a/cpu.max": "nonsense"}, ALL),
    ],
    ids=["no quota", "one", "a fifth", "a little above one", "more than there are", "of a parent",
         "a container", "version 1", "version 1, none", "another controller", "nonsense"],
)  # fmt: skip
def test_a_quota_counts_as_cores(membership, quotas, expected, tmp_path):
    for name, text in quotas.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    file = tmp_path / "membership"
    file.write_text(membership)
    assert machine_cores(tmp_path, file) == expected


def test_without_control_groups_it_is_what_the_affinity_leaves(tmp_path):
    assert machine_cores(tmp_path, tmp_path / "none") == ALL
    one = min(os.sched_getaffinity(0))
    code = "from engine.resources.machine_cores import machine_cores; print(machine_cores())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {one}),
    )  # fmt: skip
    assert done.stdout == "1\n"
