"""Published data sets, which are not shipped.

They are read from a folder alongside the checkout, or from `GROVE_PUBLISHED_DATA`. Without them
their tests are skipped, in CI too.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "GROVE_PUBLISHED_DATA"
FOLDER = Path(os.environ.get(VARIABLE) or Path(__file__).resolve().parents[3] / "shared" / "data")


def needs(*files: Path) -> pytest.MarkDecorator:
    """Skips a test if one of the files is missing; fails it if `GROVE_PUBLISHED_DATA` is set."""
    missing = [str(file) for file in files if not file.exists()]
    return pytest.mark.skipif(
        bool(missing) and not os.environ.get(VARIABLE),
        reason=f"{', '.join(missing)} is missing: name the folder of data sets in {VARIABLE}",
    )
