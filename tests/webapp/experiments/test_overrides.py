"""Tests of settings typed by hand."""

import pytest

from engine.config.errors import ConfigError
from webapp.experiments.run_settings.overrides import parse_overrides


@pytest.mark.parametrize(
    "line, path, value",
    [
        ("training.steps = 5", "training.steps", 5),
        ("credit.dynamic_filter=false", "credit.dynamic_filter", False),
        ("agents.oak.model = models/oak", "agents.oak.model", "models/oak"),
        ('agents.oak.role = "Be = brief."', "agents.oak.role", "Be = brief."),
        ("x = ", "x", ""),
    ],
)
def test_a_line_is_a_path_and_a_value(line, path, value):
    assert parse_overrides(line) == {path: value}


def test_empty_lines_and_comments_are_skipped():
    assert parse_overrides("\n# none\n  \na = 1\n") == {"a": 1}


@pytest.mark.parametrize(
    "text, reason", [("faster", "one path = value"), ("= 3", "one path"), ("a=1\na=2", "twice")]
)
def test_a_line_that_cannot_be_meant_is_refused(text, reason):
    with pytest.raises(ConfigError, match=reason):
        parse_overrides(text)


@pytest.mark.parametrize("value", ["[" * 5000, "{a=" * 5000, "9" * 20000, "0x" + "f" * 5000])
def test_a_value_too_deep_or_too_long_is_left_to_the_settings_to_refuse(value):
    assert parse_overrides(f"a = {value}") in ({"a": value}, {"a": int("f" * 5000, 16)})
