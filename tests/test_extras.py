"""Tests that a package that CI installs is never skipped there."""

import re
from pathlib import Path

import pytest

from tests.helpers.extras import is_skipped, needed

TESTS = Path(__file__).parent
ABSENT = "no_package_has_this_name"


def test_a_missing_package_is_a_reason_to_skip_but_in_ci(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    assert is_skipped(ABSENT) and not is_skipped("pytest")
    with pytest.raises(pytest.skip.Exception, match=f"{ABSENT} is not installed: get it"):
        needed(ABSENT, "get it")
    monkeypatch.setenv("CI", "true")
    assert not is_skipped(ABSENT)
    with pytest.raises(ModuleNotFoundError, match=ABSENT):
        needed(ABSENT, "get it")


def test_no_test_looks_for_a_package_by_itself():
    ways = re.compile(r"importorskip|find_spec\(|except (ImportError|ModuleNotFoundError)")
    files = [p for p in TESTS.rglob("*.py") if "attacks" not in p.parts]
    results = {str(p.relative_to(TESTS)) for p in files if ways.search(p.read_text())}
    # Neither skips anything: one checks that packages are absent, the other that one seems present.
    results -= {"packaging/test_client_only.py", "webapp/client/test_wandb_calls.py"}
    assert results == {"helpers/extras.py", Path(__file__).name}
