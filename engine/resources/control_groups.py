"""The control groups of Linux that hold this process: the limits of a container or of a job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The folder of a group, of version 1 or 2."""

    folder: Path
    version: int

    def read(self, file: str) -> str:
        """Returns the text of a file of the group, without blanks around it; "" if it has none."""
        try:
            return (self.folder / file).read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""


def own_groups(
    controller: str, groups: Path = CGROUPS, membership: Path = MEMBERSHIP
) -> Iterator[ControlGroup]:
    """Yields the groups of this process that may limit `controller` (as in memory, cpu), and all
    above them; none where there are no control groups."""
    try:
        lines = membership.read_text("utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if not controllers:
            root, version = groups, 2
        elif controller in controllers.split(","):
            root, version = groups / controller, 1
        else:
            continue
        own = root / name.strip("/")
        # In a container the own group may be mounted as the root, under another name.
        for folder in (own, *own.parents[: len(own.parts) - len(root.parts)]):
            yield ControlGroup(folder, version)
