"""Tests that hypothesis repeats what it drew, whatever a process has imported."""

from __future__ import annotations

import importlib
import sys

from hypothesis import given, seed, settings
from hypothesis import strategies as st


def drawn() -> list[int]:
    """What one seed draws."""
    values: list[int] = []

    @seed(3)
    @settings(max_examples=100, database=None)
    @given(st.integers())
    def draw(value: int) -> None:
        values.append(value)

    draw()
    return values


def test_a_seed_draws_the_same_beside_any_other_module(tmp_path, monkeypatch):
    first = drawn()
    constants = ", ".join(str(7_654_321 + n) for n in range(50))
    (tmp_path / "planted_constants.py").write_text(f"CONSTANTS = ({constants})\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("planted_constants")
    try:
        assert drawn() == first
    finally:
        del sys.modules["planted_constants"]
