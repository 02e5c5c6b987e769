"""Packages of methods on the search path of this process, as if they were installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from engine.config.methods import REGISTRIES
from engine.events.log import read_all
from engine.events.vocabulary import Event

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tests" / "plugin_package"
"""The package of docs/extending.md."""


def search_path(*folders: Path) -> str:
    """PYTHONPATH of a process in which the packages of these folders are as if installed."""
    return os.pathsep.join(map(str, (*folders, ROOT)))


def trained(run_dir: Path, settings: Mapping[str, Any], *folders: Path) -> list[Event]:
    """The log of a run with these settings, trained where the packages of these folders are."""
    run_dir.mkdir()
    (run_dir / "config.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-m", "engine", "train", str(run_dir)],
        cwd=ROOT,
        text=True,
        env=os.environ | {"PYTHONPATH": search_path(*folders)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return list(read_all(run_dir))


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
