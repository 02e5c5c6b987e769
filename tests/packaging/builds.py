"""Distributions built from the checkout's files, and environments that hold one of them.

An environment is a venv outside the checkout. Grove is installed into it from its wheel. Of this
Python's packages, only the requirements that the metadata declare are linked into it, so an
undeclared requirement is missing there.
"""

from __future__ import annotations

import email
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers.waiting import patience
from webapp.client.requirements import DISTRIBUTION

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("engine", "webapp", "workers")
BUILD_SECONDS = 120.0
_BUILD = "import sys; from setuptools import build_meta; build_meta.{}(sys.argv[1])"


def files_of_checkout() -> list[str]:
    """Every file in the working tree that git has or would add; links are not followed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    names = sorted(set(filter(None, listed.stdout.split("\0"))))
    return [name for name in names if os.path.lexists(ROOT / name)]


def copy_checkout(target: Path) -> Path:
    """A copy without the leftovers of a build, which the next build would pick up."""
    for name in files_of_checkout():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name, follow_symlinks=False)
    return target


def build_wheel(source: Path, target: Path) -> Path:
    """`pip wheel SOURCE`, with the installed setuptools."""
    _run(
        [sys.executable, "-m", "pip", "wheel", str(source), "--no-deps", "--no-build-isolation",
         "--no-index", "--quiet", "--wheel-dir", str(target)]
    )  # fmt: skip
    (wheel,) = target.glob("*.whl")
    return wheel


def build_sdist(source: Path, target: Path) -> Path:
    target.mkdir()
    _run([sys.executable, "-c", _BUILD.format("build_sdist"), str(target)], source)
    (archive,) = target.glob("*.tar.gz")
    return archive


def _run(command: list[str], directory: Path | None = None) -> None:
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=BUILD_SECONDS * patience()
    )
    assert done.returncode == 0, done.stdout + done.stderr


def requirements_in(wheel: Path) -> list[Requirement]:
    """All requirements that the wheel declares, of every extra."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    return [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]


def closure(declared: list[Requirement], extra: str) -> dict[str, Distribution]:
    """What pip would install with an extra of Grove ("" is the base), by canonical name."""
    results: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    pending = _of_extras(declared, {extra})
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        expected = {"", *requirement.extras}
        new = {one for one in expected if (name, one) not in seen}
        seen |= {(name, one) for one in new}
        if name == DISTRIBUTION:
            pending += _of_extras(declared, new)
        elif new:
            results[name] = distribution(name)
            texts = results[name].requires or []
            pending += _of_extras([Requirement(text) for text in texts], new)
    return results


def _of_extras(declared: list[Requirement], extras: set[str]) -> list[Requirement]:
    return [
        one
        for one in declared
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras)
    ]


@dataclass(frozen=True)
class Environment:
    """A venv with Grove in it, and its own home directory alongside."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    @property
    def grove(self) -> Path:
        return self.folder / "venv" / "bin" / "grove"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def packages(self) -> Path:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "venv" / "lib" / version / "site-packages"

    def variables(self, **more: str) -> dict[str, str]:
        """The variables of an account that has set none of Grove's."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return {**kept, "HOME": str(self.home), "OMP_NUM_THREADS": "1", **more}

    def run(
        self, *words: object, seconds: float = 60.0, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment in the home directory."""
        return subprocess.run(
            list(map(str, words)), cwd=self.home, env=self.variables(**variables),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds * patience(),
        )  # fmt: skip


def install(folder: Path, wheel: Path, extra: str) -> Environment:
    """Creates an environment in an empty folder, with the requirements of an extra."""
    environment = Environment(folder)
    environment.home.mkdir(parents=True)
    venv.create(folder / "venv", symlinks=True, with_pip=False)
    for one in closure(requirements_in(wheel), extra).values():
        _link(one, environment.packages)
    add(environment, wheel)
    return environment


def add(environment: Environment, wheel: Path) -> None:
    """Installs a further wheel."""
    _run(
        [sys.executable, "-m", "pip", "--python", str(environment.python), "install", "--quiet",
         "--no-deps", "--no-index", "--no-compile", str(wheel)]
    )  # fmt: skip


def _link(installed: Distribution, target: Path) -> None:
    """Links the packages, modules and metadata of a distribution of this Python."""
    tops = {file.parts[0] for file in installed.files or []} - {"..", "__pycache__"}
    for top in tops:
        link = target / top
        if not link.exists() and not top.endswith(".pth"):
            link.symlink_to(installed.locate_file(top))
