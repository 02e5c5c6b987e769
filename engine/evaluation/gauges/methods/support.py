"""Support sets of the agents: which problems each solves, alone, with others, or not at all.

Of the problems of the last `steps` steps, each as at its newest visit. An agent solves a problem if
a node of its own has the raw score 1, a repair of another agent's program included. `solved` is the
size of an agent's set. The parts of `by` sum to 1: an agent that nobody else joined,
`several_agents`, or `no_agent`. A team whose sets coincide has no use for its second agent.

Source: support sets of one model before and after training are those of Wu et al. 2025, "The
Invisible Leash", arXiv 2507.14843, section 2; ours: sets of the agents of one team, in one window.
"""

from __future__ import annotations

from pydantic import Field

from engine.config.base import Settings
from engine.config.golden_kind import Case, Kind
from engine.config.methods import Figure
from engine.evaluation.gauges.gauge import GaugeContext, Numbers, StepEvents

FIGURES = {
    "solved": Figure("Problems solved, by agent", unit="share", section="Learning"),
    "by": Figure("Problems solved by one agent alone, by several, by nobody", unit="share",
                 section="Learning"),
}  # fmt: skip
SEVERAL, NOBODY = "several_agents", "no_agent"
"""Parts of `by`; no agent has such a name."""


class Options(Settings):
    """Support sets of the agents."""

    steps: int = Field(20, ge=1, le=10_000)
    """Number of steps whose problems count: more are smoother, and show a change later."""


Visits = dict[str, tuple[int, frozenset[str]]]
"""Step and solvers of the newest visit, by problem, the oldest visit first."""


def state(options: Options) -> Visits:
    """Returns no visits."""
    return {}


def numbers(step: StepEvents, context: GaugeContext) -> Numbers:
    """Returns the shares of the problems in the window."""
    visits: Visits = context.state
    now = step.ended.step
    solvers: dict[str, set[str]] = {}
    for tree in step.trees:
        of_problem = solvers.setdefault(tree.opened.problem, set())
        of_problem |= {node.agent for node in tree.nodes if node.solves}
    for problem, agents in solvers.items():
        visits.pop(problem, None)  # the newest visit comes last
        visits[problem] = now, frozenset(agents)
    for problem, (visited, _) in list(visits.items()):
        if visited > now - context.options.steps:
            break
        del visits[problem]
    return sets(list(context.agents), [agents for _, agents in visits.values()])


def sets(agents: list[str], solvers: list[frozenset[str]]) -> Numbers:
    """Returns the shares of problems, of which `solvers` has the agents that solve each."""
    count = len(solvers)

    def share(part: int) -> float | None:
        return part / count if count else None

    by = {name: share(sum(one == {name} for one in solvers)) for name in agents}
    if len(agents) > 1:
        by[SEVERAL] = share(sum(len(one) > 1 for one in solvers))
    by[NOBODY] = share(sum(not one for one in solvers))
    return {"solved": {name: share(sum(name in one for one in solvers)) for name in agents},
            "by": by}  # fmt: skip


def _golden(case: Case) -> Numbers:
    inputs = case["inputs"]
    return sets(inputs["agents"], [frozenset(one) for one in inputs["solvers"]])


GOLDEN = {"support_sets": Kind(_golden, "agents solvers")}
