"""Tests that equality of answers is exact in type and value, at every depth."""

import math

import pytest

from engine.sandbox.host.compare import same_value

NAN = math.nan


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1),
        (10**400, 10**400),
        (0.0, -0.0),
        (NAN, float("nan")),
        ([NAN, {"a": NAN}], [float("nan"), {"a": float("nan")}]),
        (complex(NAN, 1), complex(NAN, 1)),
        ({1, 2}, {2, 1}),
        ({NAN}, {float("nan")}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (frozenset({(1, "x")}), frozenset({(1, "x")})),
        (None, None),
        ([], []),
        ([1, 2], [1, 2]),
        (["a", 1, (b"b", None)], ["a", 1, (b"b", None)]),
        ([[1, NAN], {2}], [[1, float("nan")], {2}]),
    ],
)
def test_the_same_values_are_equal(left, right):
    assert same_value(left, right)
    assert same_value(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (0, False),
        (1, 1.0),
        (1.0, 1 + 0j),
        ("a", b"a"),
        ([1], (1,)),
        ([1], [True]),
        ([[1, [2.0]]], [[1, [2]]]),
        ({1}, {True}),
        ({1}, frozenset({1})),
        ({1: "a"}, {True: "a"}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ((1, 2), (1, 2, 3)),
        (NAN, 0.0),
        (None, 0),
        (10**400, 10**400 + 1),
        ([True, False], [1, 0]),
        ([1, 2], [1, 2.0]),
        ([1, 2], [1, 3]),
        ([1, 1], [1, True]),
    ],
)
def test_other_types_or_values_are_not(left, right):
    assert not same_value(left, right)
    assert not same_value(right, left)


def test_nesting_without_end_is_not_equal_and_does_not_raise():
    left, right = [], []
    for _ in range(5_000):
        left, right = [left], [right]
    assert not same_value(left, right)
