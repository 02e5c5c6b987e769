"""Registry of generated pages and the function that makes each."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def contents() -> dict[str, str]:
    """Returns the expected text of every page, by path from the repository's root."""
    _set_up_django()
    from docs.generate import (
        commands,
        environment,
        events,
        figures,
        health,
        methods,
        rest,
        science,
        settings,
    )

    made: dict[str, Callable[[], str]] = {
        "docs/reference/settings.md": settings.page,
        "docs/reference/methods.md": methods.page,
        "docs/reference/events.md": events.page,
        "docs/reference/health.md": health.page,
        "docs/reference/rest.md": rest.page,
        "docs/reference/engine.md": commands.engine_page,
        "docs/reference/manage.md": commands.manage_page,
        "docs/reference/grove.md": commands.grove_page,
        "docs/reference/environment.md": environment.page,
        "README.md": lambda: figures.with_figures((ROOT / "README.md").read_text("utf-8")),
    }
    return {path: page() for path, page in made.items()} | science.pages()


def differing(pages: dict[str, str], root: Path = ROOT) -> dict[str, str]:
    """Returns the pages whose file is missing or has another text."""
    return {path: text for path, text in pages.items() if _now(root / path) != text}


def write(pages: dict[str, str], root: Path = ROOT) -> None:
    for path, text in pages.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")


def _now(file: Path) -> str | None:
    return file.read_text("utf-8") if file.exists() else None


def _set_up_django() -> None:
    import django
    from django.apps import apps

    if not apps.ready:
        pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
        settings = pyproject["tool"]["pytest"]["ini_options"]["DJANGO_SETTINGS_MODULE"]
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", settings)
        django.setup()
