"""Tests of the memory that a machine, or the container on it, lets this process use."""

import psutil
import pytest

from engine.resources.machine_memory import machine_memory

TOTAL = psutil.virtual_memory().total
MIB = 1 << 20


@pytest.mark.parametrize(
    "membership, limits, expected",
    [
        ("0::/site/engines\n", {"site/engines/memory.max": "max\n"}, TOTAL),
        ("0::/site/engines\n", {"site/memory.max": f"{64 * MIB}\n"}, 64 * MIB),
        ("0::/a/b\n", {"a/memory.max": f"{64 * MIB}", "a/b/memory.max": f"{32 * MIB}"}, 32 * MIB),
        ("0::/\n", {"memory.max": f"{48 * MIB}\n"}, 48 * MIB),
        ("4:cpu,memory:/docker/x\n1:name=systemd:/\n",
         {"memory/memory.limit_in_bytes": f"{16 * MIB}"}, 16 * MIB),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712"}, TOTAL),
    ],
    ids=["no limit", "of a parent", "the smaller", "a container", "version 1", "version 1, none"],
)  # fmt: skip
def test_the_limit_of_a_control_group_counts_as_the_machines(
    membership, limits, expected, tmp_path
):
    for name, text in limits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    file = tmp_path / "membership"
    file.write_text(membership)
    assert machine_memory(tmp_path, file) == expected


def test_without_control_groups_it_is_what_the_machine_has(tmp_path):
    assert machine_memory(tmp_path, tmp_path / "none") == TOTAL
