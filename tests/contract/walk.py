"""Walks from response to request along the links of the OpenAPI document.

They read, change, steer and delete what was created, and request what was deleted. A walk begins by
creating an object (`Site.beginnings`) or with a list. schemathesis generates what a link leaves
open of a request, a tenth of it invalid.
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
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import FailureGroup
from schemathesis.generation.stateful.state_machine import StepInput, StepOutput, normalize_name

from tests.contract import hooks
from tests.contract.site import Site, expected_refusals
from tests.helpers.waiting import patience

UNCOMPARED = "uncompared"
"""Name of a hypothesis backend whose draws hypothesis does not compare with earlier ones: the
server's current state decides which requests are possible, so equal starts may diverge."""
AVAILABLE_PROVIDERS[UNCOMPARED] = AVAILABLE_PROVIDERS["hypothesis"]

STEPS = 10
_TOGETHER = 5
"""Walks per run of hypothesis; the first of each is the simplest one possible."""


@dataclass
class Walked:
    """Result of the walks: how often each link was followed, and how often with success."""

    followed: Counter[str] = field(default_factory=Counter)
    succeeded: Counter[str] = field(default_factory=Counter)
    begun: Counter[str] = field(default_factory=Counter)
    """Initial requests that succeeded."""
    faults: dict[str, str] = field(default_factory=dict)
    """The first fault of each kind, by kind."""

    @property
    def targets(self) -> set[str]:
        """Operations that a link led to and that succeeded."""
        return {link.rpartition(" -> ")[2] for link in self.succeeded}


def walk(site: Site, who: str, *, scenarios: int, seeds: Sequence[int]) -> Walked:
    """Does `scenarios` walks as `who`, divided among the seeds. Runs all checks of schemathesis on
    every response and reports a response that differs when a request is repeated."""
    hooks.begin(known=False)  # whatever ran before in this process
    headers = {"Authorization": f"Bearer {site.secrets[who]}"}
    schema = schemathesis.openapi.from_url(
        f"{site.url}/api/v1/openapi.json",
        config=SchemathesisConfig.from_str(expected_refusals()),
        timeout=30 * patience(),
    )
    made, walked, beginnings = schema.as_state_machine(), Walked(), site.beginnings()

    class Walk(made):
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"headers": headers, "timeout": 30 * patience()}

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
                    # Well-formed need not mean valid: the engine decides which settings can run.
                    # Unauthenticated requests are covered by the other phases.
                    excluded_checks=[positive_data_acceptance, ignored_auth],
                    transport_kwargs=kwargs,
                    recorder=self.recorder,
                )
            except FailureGroup as group:
                for problem in group.exceptions:
                    what = f"{case.operation.label}: {problem.title}"
                    walked.faults.setdefault(what, f"{problem.message}\n{response.text[:500]}")

    first = {normalize_name(f"RANDOM -> {label}") for label in beginnings}
    for name in made.root_rules - first:
        setattr(Walk, name, None)
    Walk.root_rules = made.root_rules & first
    assert Walk.root_rules == first, f"begins nowhere: {first - made.root_rules}"
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
        except hypothesis.errors.Flaky as error:
            walked.faults[f"Flaky, seed {seed}, suite {suite}"] = str(error)
    for counted in (walked.succeeded, walked.begun):
        counted += Counter()  # without those that never did
    return walked
