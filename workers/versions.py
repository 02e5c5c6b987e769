"""Versions with which a result was made, read without importing the packages."""

from __future__ import annotations

import platform
from importlib.metadata import version

from webapp import __version__

PACKAGES = (
    "torch", "ray", "transformers", "tokenizers", "numpy", "pydantic", "django",
    "channels", "celery", "kombu", "psycopg", "uvicorn", "websockets",
)  # fmt: skip


def versions(postgres: str) -> dict[str, str]:
    """Returns version by name; `postgres` is the version that the server reported."""
    packages = {name: version(name) for name in PACKAGES}
    ours = {"python": platform.python_version(), "postgres": postgres, "grove": __version__}
    return {**ours, **packages}
