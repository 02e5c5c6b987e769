"""schemathesis hooks that omit redundant cases of the coverage phase.

They also omit, in all phases, wrong paths whose placeholders known objects fill. The coverage phase
repeats every wrong value of a parameter for each combination of the optional ones, and tries every
header on every operation, although one middleware answers them all.
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
"""Number of right values of a header, and of wrong ones, sent to an operation."""
PER_FIELD = 2
"""Number of wrong types sent for a field of the body."""
PER_KIND = 1
"""Number of values of one kind (of a wrong type, below the minimum) sent for a parameter, and for a
field of the body per scenario; tests/security/test_schema_fuzz.py has many more for parameters."""
PER_SCENARIO = 12
"""Number of fields of a body that get one kind of wrong value: those of `overrides` and of events
are many and share one check."""

_asked: Counter[tuple[Any, ...]] = Counter()
_known = False
"""Whether placeholders are filled with known objects."""


@schemathesis.hook
def filter_case(context: HookContext, case: Case) -> bool:
    """Returns whether a case is sent. Where placeholders are filled with known objects, a wrong
    path becomes a right one, so no response to it would be a finding. All other cases outside the
    coverage phase are sent."""
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
    """Starts another run of schemathesis: resets the counts of cases sent."""
    global _known
    _asked.clear()
    _known = known


def _is_among(first: int, *what: Any) -> bool:
    _asked[what] += 1
    return _asked[what] <= first
