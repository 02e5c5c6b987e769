"""Tests that a person's PYTHONWARNINGS ends no process of Grove."""

import os
import subprocess
import sys

import pytest

from workers.python_warnings import without_errors
from workers.runs.engine_environment import engine_environment

WARNS = "import warnings; warnings.warn('root', UserWarning); print('on')"


@pytest.mark.parametrize(
    "filters", ["error", "e", "Error::UserWarning", "ignore::DeprecationWarning,error"]
)
def test_a_warning_ends_no_process(filters, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", filters)
    for environment in (without_errors(os.environ), engine_environment()):
        done = subprocess.run(
            [sys.executable, "-c", WARNS], env=environment, capture_output=True, text=True
        )
        assert done.stdout == "on\n", done.stderr


def test_other_filters_and_variables_are_kept():
    given = {"PYTHONWARNINGS": "ignore::DeprecationWarning,error,default", "HOME": "/h"}
    kept = {"PYTHONWARNINGS": "ignore::DeprecationWarning,default", "HOME": "/h"}
    assert without_errors(given) == kept
    assert without_errors({"HOME": "/h"}) == {"HOME": "/h"}
    assert without_errors({"PYTHONWARNINGS": "error"}) == {}
