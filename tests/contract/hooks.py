"""What schemathesis leaves out of its coverage phase, because it has asked it before, and of all of
them where known things stand for what it would have made up.

It repeats every wrong value of a parameter for each combination of the other, optional ones, and
tries every header on every operation, where one middleware answers them all alike.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import schemathesis
from schemathesis import Case, HookContext
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation import GenerationMode
from schemathesis.generation.meta import CoverageScenario, TestPhase

PER_HEADER = 1
"""Right values of a header that an operation is asked with, and wrong ones."""
PER_FIELD = 2
"""Wrong types that a field of the body is asked with."""
PER_KIND = 1
"""Values of one kind (of a wrong type, below the least) that a parameter is asked with, and a field
of the body with for each way; tests/security/test_schema_fuzz.py has many more for parameters."""
PER_SCENARIO = 12
"""Fields of a body that are asked with one kind of wrong value: those of `overrides` and of events
are many and are checked alike."""

_asked: Counter[tuple[Any, ...]] = Counter()
_known = False
"""Whether placeholders stand for known things."""


@schemathesis.hook
def filter_case(context: HookContext, case: Case) -> bool:
    """Whether a case is asked. A known thing makes a right path of a wrong one: no answer to that
    would be a finding. All else of the other phases is asked."""
    path = case.meta.components.get(ParameterLocation.PATH) if case.meta else None
    if _known and path and path.mode is GenerationMode.NEGATIVE:
        return False
    if not case.meta or case.meta.phase.name is not TestPhase.COVERAGE:
        return True
    phase = case.meta.phase.data
    if (place := phase.parameter_location) is None:
        return True
    what = (case.operation.label, case.method, place, phase.parameter, case.meta.generation.mode)
    if place.name == "HEADER":
        return _is_among(PER_HEADER, *what)
    if place.name in ("PATH", "QUERY") and phase.parameter:
        value = (getattr(case, place.container_name) or {}).get(phase.parameter)
        if not _is_among(1, *what, json.dumps(value)):
            return False
    if place.name != "BODY":
        return _is_among(PER_KIND, *what, phase.scenario)
    if not _is_among(PER_SCENARIO, *what, phase.scenario):
        return False
    most = PER_FIELD if phase.scenario is CoverageScenario.INCORRECT_TYPE else PER_KIND
    return _is_among(most, *what, phase.scenario, phase.description)


def begin(*, known: bool) -> None:
    """Another run of it begins, in which nothing was asked yet."""
    global _known
    _asked.clear()
    _known = known


def _is_among(first: int, *what: Any) -> bool:
    _asked[what] += 1
    return _asked[what] <= first
