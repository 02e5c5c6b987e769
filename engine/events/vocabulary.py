"""Telemetry vocabulary: typed events and the format of the append-only log that holds them.

Invariants:
- `RUN_DIR/events.jsonl` is the record. One event is one line `{seq, time, kind, tree, node,
  payload}`; seq starts at 1 and grows by exactly 1; a line is flushed before `append` returns.
- The next writer truncates a torn last line (its writer was killed); readers never read one.
- The vocabulary is additive only.
- A tree's id is the seq of its `tree.open`, so no two trees of a run share one.
- `RunResumed(step=S)` voids earlier lines of steps after S: those steps are repeated under new tree
  ids, and every fold of the log drops the voided ones, so that no step counts twice.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from engine.events.states import HealthState, NoProgram, RunState, StopReason, Verdict


class TestReport(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Result of one public test, for display; `input`, `expected` and `actual` are literals."""

    verdict: Verdict
    input: str
    expected: str
    actual: str = ""
    error: str = ""


class Payload(msgspec.Struct, frozen=True):
    """Base class of all payloads; the kind is declared once, in `tag`."""


class RunStateChanged(Payload, tag="run.state"):
    state: RunState
    reason: str = ""


class RunResumed(Payload, tag="run.resumed"):
    step: int
    """Last step of the checkpoint; later steps are void and will be repeated."""


class RunWaiting(Payload, tag="run.waiting"):
    name: str
    """Name of the wait ("sandbox", "starting Ray"); empty when the wait is over."""
    deadline_seconds: float = 0.0
    """Deadline of the wait; 0 if it has none of its own."""
    done: int = 0
    """Number of `total` that are done: the judged programs of an evaluation."""
    total: int = 0
    """Number of items that are awaited; 0 for a wait that is not counted."""


class RunPlanned(Payload, tag="run.planned"):
    steps: int
    agents: list[str]
    minutes: float | None = None


class StepStarted(Payload, tag="step.start"):
    step: int
    trees: int


class StepEnded(Payload, tag="step.end"):
    step: int
    seconds: float
    phases: dict[str, float]
    """Seconds by name: generate, verify, credit, learn, sync, validate, checkpoint."""
    nodes: int
    reward: float
    """Mean raw score over all nodes of the step."""
    solved: float
    """Share of trees with at least one node of score 1."""
    node_share: dict[str, float]
    reward_by_agent: dict[str, float]
    filtered_trees: int
    dropped_nodes: int
    """Nodes whose verification failed technically."""
    tokens: int
    training_seconds: float
    """Seconds of training so far in the whole run, without waits and evaluation."""
    refilled_trees: int = 0
    """Trees grown to replace filtered ones; all other figures count them too."""
    carried_trees: int = 0
    """Trees that were in flight when the step had enough; they are carried over to the next."""
    trees: int = 0
    """Trees that were credited, including filtered and refilled ones."""
    left: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    """Rows of the step's batches that no update learns from, and demonstrations that there are none
    of, by the reason that the composer (`training.compose`) names; and nodes that the judge gave no
    grade, by its reason; if there are some. Stale rows are in `agent.update`."""
    rows: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    """Rows that the step's updates learn from, repeated ones included, by kind, if some are not
    of its batches: rollout, demonstration or replay."""


class TreeOpened(Payload, tag="tree.open"):
    step: int
    problem: str
    statement: str
    difficulty: int = 0
    tags: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Tags of the problem, if a gauge of the run reads them (`evaluation.gauges`)."""


class NodeOpened(Payload, tag="node.open"):
    agent: str
    parent: int
    """Id of the parent; node 0 is the root, the problem statement."""
    depth: int
    draws: dict[str, Any]
    """Thompson draws behind this choice and the posteriors that they were drawn from, as recorded
    by the sampler (`engine.search.expansion.Expansion`)."""


class NodeText(Payload, tag="node.text"):
    """Prompt and output of a node, verbatim; emitted before its `node.close`.

    Large, and needed of one node at a time: pages request it by node, and the stream omits it.
    """

    prompt: str
    tokens: list[str]
    """Texts of the output's tokens, special ones included; of a long output, the first ones."""
    logprobs: list[float]
    """Log-probability of each of these tokens when it was sampled, in nats."""


class NodeClosed(Payload, tag="node.close"):
    program: str
    verdict: Verdict
    score: float | None
    """Raw score; None if verification failed technically, which excludes the node from credit."""
    fraction: float
    tests: list[TestReport]
    tokens: int
    stop: StopReason
    mean_logprob: float
    policy_version: int
    """Version that sampled it; of an answer in pieces the oldest."""
    seconds: float
    error: str = ""
    no_program: NoProgram | msgspec.UnsetType = msgspec.UNSET
    """Why the answer holds no program for its problem, if it holds none. `program` may then be what
    else of it parses."""
    pieces: list[tuple[int, int]] | msgspec.UnsetType = msgspec.UNSET
    """(Policy version, number of tokens) of each piece of an answer that several versions sampled
    (`training.interrupt`)."""


class NodeCredited(Payload, tag="node.credit"):
    shaped: float
    """Reward of all its parts."""
    advantage: float
    parts: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    """What each part adds to the reward, by name, if a run gives weight to parts beside the tests;
    `tests` is the shaped score."""
    gates: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    """Factors of the raw score before shaping, by name, if there are some."""


class TreeClosed(Payload, tag="tree.close"):
    nodes: int
    solved: bool
    mean_score: float
    filtered: bool


class AgentUpdated(Payload, tag="agent.update"):
    agent: str
    step: int
    version: int
    nodes: int
    loss: float
    policy_loss: float
    kl: float
    clip_fraction: float
    entropy: float
    gradient_norm: float
    learning_rate: float
    lag: float
    """Mean staleness of the nodes, in policy versions."""
    mismatch: float
    """Mean |log pi_old - log pi_rollout| over the tokens learned from."""
    stale_nodes: int = 0
    shared_with: list[str] = []
    """Other agents with the same weights, whose nodes were learned from too."""
    layout: str = ""
    """Layout of rows in forward passes: padded, packed or prefix."""
    layout_reason: str = ""
    """Why the layout differs from the requested `training.row_layout`, or empty."""
    row_tokens: int = 0
    """Tokens of the rows, without padding or sharing."""
    forwarded_tokens: int = 0
    """Tokens of one forward pass over all rows: more by padding, fewer by shared prefixes."""
    trees: list[int] = []
    """Ids of the trees whose nodes of these agents went into this update."""
    figures: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    """Numbers that the run's methods report of themselves, by name. Each is a series; its title
    stands beside the method."""


class LearnedNode(msgspec.Struct, frozen=True):
    """Token statistics of one node in an update, for the same first tokens of a long output as
    `NodeText`. Rounded to three decimals."""

    node: int
    entropy: list[float]
    """Entropy of the learner's distribution at each token, in nats."""
    ratio: list[float]
    """Importance ratio of each token: its probability when it was learned from over that when it
    was sampled."""


class TreeLearned(Payload, tag="tree.learned"):
    """Token statistics of one tree's nodes in an update; emitted after its `agent.update`.

    Large, and needed of one node at a time, as `NodeText`. One event per tree, since a step has
    many nodes. An update with several passes over its batch emits those of the last pass.
    """

    agent: str
    """Owner of the weights that learned."""
    step: int
    version: int
    """Policy version after the update."""
    nodes: list[LearnedNode]


class FamilyFigures(msgspec.Struct, frozen=True):
    """Figures of an evaluation on the problems of one family."""

    problems: int
    agents: dict[str, float]
    """Pass@1 of each agent alone."""
    standard_errors: dict[str, float]
    tree: float | None = None
    samples: float | None = None


class EvaluationResult(Payload, tag="eval.result"):
    step: int
    split: str
    agents: dict[str, float]
    """Pass@1 of each agent alone."""
    standard_errors: dict[str, float]
    problems: int
    tree: float | None = None
    """Pass@1(tree, n): mean private verdict of the node that the team's search selects."""
    samples: float | None = None
    """The same for n independent samples of the team, without refinement and search."""
    tree_nodes: int = 0
    rollouts: int = 0
    tokens: int = 0
    seconds: float = 0.0
    families: dict[str, FamilyFigures] | msgspec.UnsetType = msgspec.UNSET
    """The same by family of problem, `stated` and `underspecified`, where there are both."""
    no_program: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    """Share of all answers that hold no program, by reason, if some hold none."""


class EvaluationOutcomes(Payload, tag="eval.outcomes"):
    """Per-problem values of the `eval.result` of the same step and split; emitted after it.

    Large, and needed only where two runs are compared: the stream omits it.
    """

    step: int
    split: str
    contents: list[str]
    """Identity of each problem: the start of its content hash, as hex."""
    outcomes: dict[str, list[float | None]]
    """One value per problem, None where verification failed, by figure: `pass@1/AGENT`,
    `tree/pass@1` and `samples/pass@1` (`engine.evaluation.figures`)."""


class CheckpointSaved(Payload, tag="checkpoint.saved"):
    step: int
    path: str
    final: bool = False
    models: dict[str, str] = {}
    """Directory of each agent's weights, relative to the run directory, if final."""
    validation: float | None = None
    """Mean validation Pass@1 of the agents at this step, if it was measured."""
    best: bool = False
    """Whether no earlier checkpoint has a higher one; the best is kept until a later one is as
    good."""


class SearchAnswered(Payload, tag="search.answer"):
    """Answer of a search at test time, emitted once when it ends, for any reason. The event's
    `tree` and `node` identify the node; there is no node if nothing was verified."""

    program: str
    agent: str
    rule: str
    """Rule that chose the node among all verified ones; it never uses private tests."""
    passed: int
    """Public tests that the program passes, out of `tests`."""
    tests: int
    private_passed: bool | None
    """Whether the program passes all private tests, not used before; None without a node."""
    ended: str
    """Why the search opened no more nodes: nodes, tokens, seconds, solved, stopped or failed."""
    nodes: int
    """Number of nodes that were written."""
    tokens: int
    seconds: float
    reward: float | None = None
    """Score of the program by the reward model, from 0 to 1, if there is one."""


class HealthChanged(Payload, tag="health"):
    """A health warning of the run that opened or closed, emitted after the `step.end` at which a
    rule of `engine.health` changed its answer. A rule has at most one open warning per agent."""

    rule: str
    """Name of the rule."""
    state: HealthState
    step: int
    """Last finished step when the warning opened or closed."""
    title: str
    seen: str
    """What is seen, with its numbers, in one sentence."""
    since: int
    """First step of what is seen."""
    since_time: float
    """End of that step, in Unix seconds."""
    agent: str = ""
    """Agent that it is about; empty if it is about the whole run."""
    advice: str = ""
    """What usually helps, with the settings to change."""
    figures: dict[str, float] = {}
    """The numbers in `seen`, and the thresholds that they are compared with."""


class SystemSample(Payload, tag="system.sample"):
    cpu_percent: float
    memory_mb: float
    gpu_percent: float | None = None
    gpu_memory_mb: float | None = None
    by_node: dict[str, float] = {}
    """Readings per node of the cluster, `METRIC.NODE`, and per GPU, `METRIC.NODE:INDEX`:
    node_cpu_percent, node_memory_*, node_disk_*, node_network_*, gpu_percent, gpu_memory_*,
    gpu_power_w (`engine.run.node_readings`)."""


class LogLine(Payload, tag="log.line"):
    level: str
    message: str


class ErrorRaised(Payload, tag="error"):
    message: str
    """First cause, in one sentence."""
    traceback: str = ""
    phase: str = ""
    """Phase that failed: one of `StepEnded.phases`, or `start`; empty if unknown."""
    agent: str = ""
    rank: int | None = None
    """Learner rank that failed."""


class LoggedTable(msgspec.Struct, frozen=True):
    """A table as it was logged; every row has as many cells as there are columns."""

    columns: list[str]
    rows: list[list[str | float | bool | None]]
    left_out: int = 0
    """Rows that the client left out, beyond its limit."""


class LoggedHistogram(msgspec.Struct, frozen=True):
    """A histogram: bin i counts values from `edges[i]` to `edges[i + 1]`."""

    edges: list[float]
    counts: list[float]


class LoggedImage(msgspec.Struct, frozen=True):
    """A picture, as the bytes of its file in base64."""

    format: Literal["png", "jpeg"]
    data: str
    caption: str = ""


class MetricLogged(Payload, tag="metric.logged"):
    """Values that a program logged at a step, by names of its own: the open kind, whose names no
    other kind lists. A name may be logged again at any step; the newest counts."""

    step: int
    numbers: dict[str, float] | UnsetType = UNSET
    """Finite numbers; each name is a chart."""
    nonfinite: dict[str, Literal["nan", "inf", "-inf"]] | UnsetType = UNSET
    """Numbers that JSON cannot write, and no chart can show."""
    texts: dict[str, str] | UnsetType = UNSET
    tables: dict[str, LoggedTable] | UnsetType = UNSET
    histograms: dict[str, LoggedHistogram] | UnsetType = UNSET
    images: dict[str, LoggedImage] | UnsetType = UNSET


class RunDescribed(Payload, tag="run.described"):
    """What another program says about its run (`grove.init`, `grove.config`, `grove.summary`): each
    field that is there is merged into, or replaces, what was said before."""

    config: dict[str, Any] | UnsetType = UNSET
    """Settings of that program, merged by their first key."""
    summary: dict[str, Any] | UnsetType = UNSET
    """Final values that it sets itself, merged so too."""
    tags: list[str] | UnsetType = UNSET
    notes: str | UnsetType = UNSET


AnyPayload = (
    RunStateChanged
    | RunResumed
    | RunWaiting
    | RunPlanned
    | StepStarted
    | StepEnded
    | TreeOpened
    | NodeOpened
    | NodeText
    | NodeClosed
    | NodeCredited
    | TreeClosed
    | AgentUpdated
    | TreeLearned
    | EvaluationResult
    | EvaluationOutcomes
    | CheckpointSaved
    | SearchAnswered
    | HealthChanged
    | SystemSample
    | LogLine
    | MetricLogged
    | RunDescribed
    | ErrorRaised
)

KINDS: dict[str, type[Payload]] = {
    p.__struct_config__.tag: p
    for p in AnyPayload.__args__  # type: ignore[attr-defined]
}


class Event(msgspec.Struct, frozen=True):
    """One line of the log; `time` is in Unix seconds."""

    seq: int
    time: float
    kind: str
    tree: int | None
    node: int | None
    payload: dict[str, Any]

    def typed(self) -> Payload:
        """Returns the payload as its class; raises `msgspec.ValidationError` if it does not fit."""
        return msgspec.convert({"type": self.kind, **self.payload}, KINDS[self.kind])
