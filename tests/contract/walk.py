"""Walks from answer to request along the links of the OpenAPI document: what was made is read,
changed, steered and removed, and what was removed is asked for again.

A walk begins by making something of known things (`Site.beginnings`) or with a list. What a link
leaves open of a request, schemathesis makes up, a tenth of it wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import hypothesis
import schemathesis
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS
from schemathesis.checks import ignored_auth, positive_data_acceptance
from schemathesis.core.failures import FailureGroup
from schemathesis.generation.stateful.state_machine import StepInput, StepOutput, normalize_name

from tests.contract.site import Site

UNCOMPARED = "uncompared"
"""What hypothesis calls draws of its own that it holds against no earlier ones: what the server has
by now decides what can be requested, so two walks that begin alike need not go on alike."""
AVAILABLE_PROVIDERS[UNCOMPARED] = AVAILABLE_PROVIDERS["hypothesis"]

STEPS = 10
_TOGETHER = 5
"""Walks that one run of hypothesis makes; the first of each is the simplest there is."""


@dataclass
class Walked:
    """What came of it: how often each link was followed, and how often answered by a success."""

    followed: Counter[str] = field(default_factory=Counter)
    succeeded: Counter[str] = field(default_factory=Counter)
    begun: Counter[str] = field(default_factory=Counter)
    """Beginnings that succeeded."""
    faults: dict[str, str] = field(default_factory=dict)
    """The first of a kind, by what it is."""

    @property
    def targets(self) -> set[str]:
        """Operations that a link led to and that succeeded."""
        return {link.rpartition(" -> ")[2] for link in self.succeeded}


def walk(site: Site, who: str, *, scenarios: int, seeds: Sequence[int]) -> Walked:
    """So many walks as `who`, divided among the seeds; every answer is held against all checks of
    schemathesis, and one that differs where a request is repeated is reported."""
    headers = {"Authorization": f"Bearer {site.secrets[who]}"}
    schema = schemathesis.openapi.from_url(f"{site.url}/api/v1/openapi.json")
    made, walked, beginnings = schema.as_state_machine(), Walked(), site.beginnings()

    class Walk(made):
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"headers": headers, "timeout": 30}

        def step(self, input: StepInput) -> StepOutput:
            transition = input.transition
            if transition is None:
                input.case = input.case.operation.Case(**beginnings[input.case.operation.label]())
            self.recorder.record_case(
                case=input.case,
                parent_id=transition and transition.parent_id,
                transition=transition,
                is_transition_applied=input.is_applied,
            )
            self.control.record_step(input, self.recorder)
            output = super().step(input)
            is_done = output.response.status_code < 300
            if transition is None:
                walked.begun[input.case.operation.label] += is_done
            elif input.is_applied:
                walked.followed[transition.id] += 1
                walked.succeeded[transition.id] += is_done
            return output

        def validate_response(self, response: Any, case: Any, **kwargs: Any) -> None:
            try:
                case.validate_response(
                    response,
                    # What is well formed need not fit: which settings can run, the engine knows.
                    # Nobody without a token is let in: the other phases ask that.
                    excluded_checks=[positive_data_acceptance, ignored_auth],
                    transport_kwargs=kwargs,
                    recorder=self.recorder,
                )
            except FailureGroup as group:
                for fault in group.exceptions:
                    what = f"{case.operation.label}: {fault.title}"
                    walked.faults.setdefault(what, f"{fault.message}\n{response.text[:500]}")

    first = {normalize_name(f"RANDOM -> {label}") for label in beginnings}
    for name in made.root_rules - first:
        setattr(Walk, name, None)
    Walk.root_rules = made.root_rules & first
    assert len(Walk.root_rules) == len(beginnings)
    Walk._root_labels = frozenset(beginnings)
    settings = hypothesis.settings(
        phases=[hypothesis.Phase.generate],
        max_examples=_TOGETHER,
        backend=UNCOMPARED,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    for suite in range(scenarios // _TOGETHER):
        seed = seeds[suite % len(seeds)]
        hypothesis.seed(seed * 1000 + suite)(Walk)
        try:
            Walk.run(settings=settings)
        except hypothesis.errors.Flaky as fault:
            walked.faults[f"Flaky, seed {seed}, suite {suite}"] = str(fault)
    for counted in (walked.succeeded, walked.begun):
        counted += Counter()  # without those that never did
    return walked
