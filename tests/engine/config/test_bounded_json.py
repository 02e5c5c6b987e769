"""Tests that no number of a stranger is converted whose conversion takes long."""

import subprocess
import sys

import pytest

from engine.config.bounded_json import LongNumber, loads

MILLION = "7" * 10**6
CPU_SECONDS = 8
READING = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({CPU_SECONDS}, {CPU_SECONDS}))
from engine.problems.containers.text import parsed
for number in sys.stdin.read().split():
    print(parsed('[{{"tests": [1, {{"given": ' + number + '}}]}}]'))
"""


def test_a_number_of_a_million_digits_of_any_kind_is_refused_before_it_is_converted():
    numbers = [MILLION, f"-{MILLION}", f"{MILLION}.5", f"0.{MILLION}", f"-{MILLION}e5",
               "1e1000000", "-1E999999999"]  # fmt: skip
    read = subprocess.run(
        [sys.executable, "-c", READING], input=" ".join(numbers), capture_output=True, text=True
    )
    assert read.returncode == 0, f"killed at {CPU_SECONDS} s of CPU time: {read.stderr}"
    lines = read.stdout.splitlines()
    assert len(lines) == len(numbers)
    assert all("in [0].tests[1].given; round it" in line for line in lines)
    assert all("1,000,00" in line and "10,000 at most" in line for line in lines[:5])
    assert all("too large for a float" in line for line in lines[5:])


def test_all_other_numbers_are_read_as_they_are():
    digits = "9" * 9999
    text = f'{{"a": {digits}, "b": -{digits}, "c": [1.5, -2e3, 0, 1e-999], "d": "{digits}e9"}}'
    value = loads(text)
    assert (value["a"], value["b"]) == (10**9999 - 1, 1 - 10**9999)
    assert value["c"] == [1.5, -2000.0, 0, 0.0] and value["d"] == f"{digits}e9"
    with pytest.raises(LongNumber, match=r"10,001 digits \(10,000 at most\) in a; "):
        loads(text.replace(digits, digits + "99"))


def test_the_field_of_a_number_is_short_however_deep_it_is_and_nesting_is_no_number():
    deep = '{"' + "k" * 500 + '": ' + "[" * 400 + MILLION + "]" * 400 + "}"
    with pytest.raises(LongNumber) as refusal:
        loads(deep)
    assert len(str(refusal.value)) < 400
    with pytest.raises(RecursionError):
        loads("[" * 100_000)
    with pytest.raises(ValueError, match="Expecting value"):
        loads(f"[{MILLION}, ]")
