"""Which versions a result was made with, read without importing what they belong to."""

from __future__ import annotations

import platform
from importlib.metadata import version

from webapp import __version__

PACKAGES = (
    "torch", "ray", "transformers", "tokenizers", "numpy", "pydantic", "django",
    "channels", "celery", "kombu", "psycopg", "uvicorn", "websockets",
)  # fmt: skip


def versions(postgres: str) -> dict[str, str]:
    """Version by name; `postgres` is what the server said."""
    packages = {name: version(name) for name in PACKAGES}
    ours = {"python": platform.python_version(), "postgres": postgres, "grove": __version__}
    return {**ours, **packages}
