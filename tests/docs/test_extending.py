"""Tests that docs/extending.md shows the package that the tests of plug-ins use, whole."""

import re
import tomllib
from configparser import ConfigParser
from pathlib import Path

from engine.config.columns import NODE_COLUMNS, ROW_COLUMNS
from engine.config.methods import REGISTRIES
from engine.config.plugins import PREFIX
from tests.helpers.plugin_packages import EXAMPLE

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_every_module_of_the_example_is_on_the_page_as_it_is():
    modules = [path for path in (EXAMPLE / "grove_example").glob("*.py") if path.stem != "__init__"]
    assert sorted(blocks("python")) == sorted(path.read_text("utf-8") for path in modules)


def test_the_entry_points_on_the_page_are_the_example_s():
    (text,) = blocks("toml")
    assert text == (EXAMPLE / "pyproject.toml").read_text("utf-8")
    installed = ConfigParser()
    installed.read(EXAMPLE / "grove_example-0.1.dist-info" / "entry_points.txt")
    shown = tomllib.loads(text)["project"]["entry-points"]
    assert shown == {group: dict(installed[group]) for group in installed.sections()}
    assert {group.removeprefix(PREFIX) for group in shown} == {one.kind for one in REGISTRIES}


def test_every_column_is_in_the_table():
    for name, meaning in NODE_COLUMNS.items():
        assert f"| `{name}` | {meaning} |" in PAGE
    numbers = ", ".join(f"`{name}`" for name in sorted(ROW_COLUMNS))
    assert numbers in " ".join(PAGE.split())


def test_every_registry_has_its_row():
    for one in REGISTRIES:
        line = f"`{one.package.replace('.', '/')}/__init__.py` | `{PREFIX}{one.kind}` |"
        assert f"| `{one.path}` |" in PAGE and line in PAGE, one
