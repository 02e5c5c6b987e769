"""Packages of methods on the search path of this process, as if they were installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

from engine.config.methods import REGISTRIES

EXAMPLE = Path(__file__).parents[1] / "plugin_package"
"""The package of docs/extending.md."""


def a_package(
    folder: Path,
    modules: Mapping[str, str],
    entry_points: Mapping[str, Mapping[str, str]],
    name: str = "grove_toy",
) -> Path:
    """Writes a package of these modules, and returns the folder to put on the search path."""
    module, info = folder / name, folder / f"{name}-0.2.dist-info"
    for path in (module, info):
        path.mkdir(parents=True)
    (module / "__init__.py").touch()
    for stem, text in modules.items():
        (module / f"{stem}.py").write_text(dedent(text))
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.2\n")
    lines = [
        line
        for group, points in entry_points.items()
        for line in (f"[{group}]", *(f"{one} = {value}" for one, value in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder


@contextmanager
def installed(*folders: Path) -> Iterator[None]:
    """The packages of these folders are on the search path while the block runs; then nothing of
    them is left in this process."""
    before, modules = list(sys.path), set(sys.modules)
    sys.path[:0] = map(str, folders)
    try:
        yield
    finally:
        sys.path[:] = before
        for one in REGISTRIES:
            for name in set(one.methods) - set(one.methods.own):
                del one.methods[name]
        for name in set(sys.modules) - modules:
            if name.partition(".")[0] in {path.stem for f in folders for path in f.iterdir()}:
                del sys.modules[name]
