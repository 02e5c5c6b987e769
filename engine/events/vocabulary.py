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
    """Result of one public test, for display; long texts are cut."""

    verdict: Verdict
    """How the program did on this test."""
    input: str
    """Arguments of the call, or the text of stdin, as literals; of a code test, its code."""
    expected: str
    """Literal of the right result; empty for a code test."""
    actual: str = ""
    """Literal of what the program returned or printed; empty if it did not."""
    error: str = ""
    """Class, message and last line of the program's exception, if it raised one."""


class Payload(msgspec.Struct, frozen=True):
    """Base class of all payloads; the kind is declared once, in `tag`."""


class RunStateChanged(Payload, tag="run.state"):
    """A state that the engine has entered."""

    state: RunState
    """The new state."""
    reason: str = ""
    """Why, of a run that stopped or failed."""


class RunResumed(Payload, tag="run.resumed"):
    """A further engine goes on from a checkpoint, or from the beginning."""

    step: int
    """Last step of the checkpoint; later steps are void and will be repeated."""


class RunWaiting(Payload, tag="run.waiting"):
    """A long wait, when it begins, makes progress, and is over."""

    name: str
    """Name of the wait ("sandbox", "starting Ray"); empty when the wait is over."""
    deadline_seconds: float = 0.0
    """Seconds from its beginning to its deadline; 0 if it has none of its own."""
    done: int = 0
    """Number of `total` that are done: the judged programs of an evaluation."""
    total: int = 0
    """Number of items that are awaited; 0 for a wait that is not counted."""


class RunPlanned(Payload, tag="run.planned"):
    """What the run is going to do, emitted by every engine that takes it."""

    steps: int
    """Steps of the whole run; 1 for a search."""
    agents: list[str]
    """Names of the team's agents, in the order of the settings."""
    minutes: float | None = None
    """Minutes of training after which it ends before its last step, if limited."""


class StepStarted(Payload, tag="step.start"):
    """The beginning of a step, before its first tree."""

    step: int
    """Number of the step, from 1."""
    trees: int
    """Trees that it is to grow, without those that refill it."""


class StepEnded(Payload, tag="step.end"):
    """Figures of a finished step, over its credited trees."""

    step: int
    """Number of the step."""
    seconds: float
    """Wall time of the step."""
    phases: dict[str, float]
    """Seconds by name: generate, verify, credit, learn, sync, validate, checkpoint."""
    nodes: int
    """Nodes of these trees, failed ones included, without the roots."""
    reward: float
    """Mean raw score over all nodes of the step."""
    solved: float
    """Share of trees with at least one node of score 1."""
    node_share: dict[str, float]
    """Share of the nodes by agent; the shares sum to 1."""
    reward_by_agent: dict[str, float]
    """Mean raw score of the nodes of each agent that has scored nodes."""
    filtered_trees: int
    """Trees that the dynamic filter left out of the updates."""
    dropped_nodes: int
    """Nodes whose verification failed technically."""
    tokens: int
    """Output tokens of all nodes."""
    training_seconds: float
    """Seconds of training so far in the whole run, without waits and evaluation."""
    refilled_trees: int = 0
    """Trees grown to replace filtered ones; all other figures count them too."""
    carried_trees: int = 0
    """Trees that were in flight when the step had enough; they are carried over to the next."""
    trees: int = 0
    """Trees that were credited, including filtered and refilled ones."""
    left: dict[str, float] | UnsetType = UNSET
    """Rows of the step's batches that no update learns from, and demonstrations that there are none
    of, by the reason that the composer (`training.compose`) names; and nodes that the judge gave no
    grade, by its reason; if there are some. Stale rows are in `agent.update`."""
    rows: dict[str, float] | UnsetType = UNSET
    """Rows that the step's updates learn from, repeated ones included, by kind, if some are not
    of its batches: rollout, demonstration or replay."""


class TreeOpened(Payload, tag="tree.open"):
    """A tree that holds only its root, the statement of its problem."""

    step: int
    """Step that the tree is grown for."""
    problem: str
    """Id of the problem."""
    statement: str
    """Text of the problem, as its data set has it."""
    difficulty: int = 0
    """Number of composed operations of a generated problem; 0 if unknown."""
    tags: list[str] | UnsetType = UNSET
    """Tags of the problem, if a gauge of the run reads them (`evaluation.gauges`)."""


class NodeOpened(Payload, tag="node.open"):
    """The choice of an agent and a parent: the beginning of a node."""

    agent: str
    """Name of the agent that writes the answer."""
    parent: int
    """Id of the parent; node 0 is the root, the problem statement."""
    depth: int
    """Number of edges to the root; 1 for a child of the root."""
    draws: dict[str, Any]
    """Thompson draws behind this choice and the posteriors that they were drawn from, as recorded
    by the sampler (`engine.search.expansion.Expansion`)."""


class NodeText(Payload, tag="node.text"):
    """Prompt and output of a node, verbatim; emitted before its `node.close`.

    Large, and needed of one node at a time: pages request it by node, and the stream omits it.
    """

    prompt: str
    """The prompt as the model read it, special tokens included; of a long one, the end."""
    tokens: list[str]
    """Texts of the output's tokens, special ones included; of a long output, the first ones."""
    logprobs: list[float]
    """Log-probability of each of these tokens when it was sampled, in nats."""


class NodeClosed(Payload, tag="node.close"):
    """The end of a node: its answer is written and verified."""

    program: str
    """Program, or another action, that was read in the answer; empty if there is none."""
    verdict: Verdict
    """`passed`, or the verdict of the first test that failed, public tests first."""
    score: float | None
    """Raw score; None if verification failed technically, which excludes the node from credit."""
    fraction: float
    """Share of all tests that passed, public and private."""
    tests: list[TestReport]
    """Public tests, in the order of the problem."""
    tokens: int
    """Output tokens."""
    stop: StopReason
    """Why generation ended."""
    mean_logprob: float
    """Mean log-probability of the output tokens when they were sampled, in nats per token."""
    policy_version: int
    """Version that sampled it; of an answer in pieces the oldest."""
    seconds: float
    """Wall time of generation and verification together."""
    error: str = ""
    """Error of the program on the first test that failed, if it raised one."""
    no_program: NoProgram | UnsetType = UNSET
    """Why the answer holds no program for its problem, if it holds none. `program` may then be what
    else of it parses."""
    pieces: list[tuple[int, int]] | UnsetType = UNSET
    """(Policy version, number of tokens) of each piece of an answer that several versions sampled
    (`training.interrupt`)."""


class NodeCredited(Payload, tag="node.credit"):
    """Reward and advantage of a scored node, emitted when its tree is credited."""

    shaped: float
    """Reward of all its parts."""
    advantage: float
    """Advantage of its output tokens; the mean over them where they differ."""
    parts: dict[str, float] | UnsetType = UNSET
    """What each part adds to the reward, by name, if a run gives weight to parts alongside the
    tests; `tests` is the shaped score."""
    gates: dict[str, float] | UnsetType = UNSET
    """Factors of the raw score before shaping, by name, if there are some."""


class TreeClosed(Payload, tag="tree.close"):
    """The end of a tree: no node of it is open, and none will be opened."""

    nodes: int
    """Nodes without the root."""
    solved: bool
    """Whether a node has the raw score 1."""
    mean_score: float
    """Mean raw score of its scored nodes; 0 without any."""
    filtered: bool
    """Whether the dynamic filter leaves it out of the updates."""


class AgentUpdated(Payload, tag="agent.update"):
    """An update of one set of weights; means are over its optimizer steps, and within these over
    output tokens unless stated otherwise."""

    agent: str
    """Owner of the weights."""
    step: int
    """Step of the update."""
    version: int
    """Policy version after the update."""
    nodes: int
    """Nodes that were learned from, without demonstrations."""
    loss: float
    """The whole loss: policy loss, KL term and entropy bonus with their coefficients."""
    policy_loss: float
    """The policy loss, averaged as `loss.aggregation` says."""
    kl: float
    """Estimated KL divergence from the reference, in nats per token, before its coefficient."""
    clip_fraction: float
    """Share of tokens that a clip affected."""
    entropy: float
    """Entropy of the learner's distribution at the output positions, in nats."""
    gradient_norm: float
    """Euclidean norm before clipping; the mean over optimizer steps."""
    learning_rate: float
    """Rate of the update's optimizer steps, after the schedule."""
    lag: float
    """Mean staleness of the nodes, in policy versions."""
    mismatch: float
    """Mean |log pi_old - log pi_rollout| over the tokens learned from, in nats."""
    stale_nodes: int = 0
    """Nodes that were dropped because they were older than `training.max_staleness`."""
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
    figures: dict[str, float] | UnsetType = UNSET
    """Numbers that the run's methods report of themselves, by name. Each is a series; its title
    is declared by the method's module."""


class LearnedNode(msgspec.Struct, frozen=True):
    """Token statistics of one node in an update, for the same first tokens of a long output as
    `NodeText`. Rounded to three decimals."""

    node: int
    """Id of the node in its tree."""
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
    """Step of the update."""
    version: int
    """Policy version after the update."""
    nodes: list[LearnedNode]
    """Nodes of the tree that were learned from, by id."""


class FamilyFigures(msgspec.Struct, frozen=True):
    """Figures of an evaluation on the problems of one family."""

    problems: int
    """Problems of the family."""
    agents: dict[str, float]
    """Pass@1 of each agent alone."""
    standard_errors: dict[str, float]
    """Standard error of each agent's Pass@1, over the problems."""
    tree: float | None = None
    """Pass@1(tree, n), as in `EvaluationResult`."""
    samples: float | None = None
    """The same for independent samples."""


class EvaluationResult(Payload, tag="eval.result"):
    """Measurement of the team on the problems of a split."""

    step: int
    """Last step before it; 0 for the starting weights, and outside of training."""
    split: str
    """`validation` or `test`."""
    agents: dict[str, float]
    """Pass@1 of each agent alone."""
    standard_errors: dict[str, float]
    """Standard error of each agent's Pass@1, over the problems."""
    problems: int
    """Problems that were measured."""
    tree: float | None = None
    """Pass@1(tree, n): mean private verdict of the node that the team's search selects."""
    samples: float | None = None
    """The same for n independent samples of the team, without refinement and search."""
    tree_nodes: int = 0
    """Nodes of each tree, and samples of each problem; 0 without a search."""
    rollouts: int = 0
    """Answers that were written in all."""
    tokens: int = 0
    """Output tokens of these answers."""
    seconds: float = 0.0
    """Wall time of the measurement."""
    families: dict[str, FamilyFigures] | UnsetType = UNSET
    """The same by family of problem, `stated` and `underspecified`, where there are both."""
    no_program: dict[str, float] | UnsetType = UNSET
    """Share of all answers that hold no program, by reason, if some hold none."""


class EvaluationOutcomes(Payload, tag="eval.outcomes"):
    """Per-problem values of the `eval.result` of the same step and split; emitted after it.

    Large, and needed only where two runs are compared: the stream omits it.
    """

    step: int
    """Step of the `eval.result`."""
    split: str
    """Split of the `eval.result`."""
    contents: list[str]
    """Identity of each problem: the start of its content hash, as hex."""
    outcomes: dict[str, list[float | None]]
    """One value per problem, None where verification failed, by figure: `pass@1/AGENT`,
    `tree/pass@1` and `samples/pass@1` (`engine.evaluation.figures`)."""


class CheckpointSaved(Payload, tag="checkpoint.saved"):
    """A checkpoint that is complete on disk, or the final weights."""

    step: int
    """Last step that it contains."""
    path: str
    """Directory, relative to the run directory."""
    final: bool = False
    """Whether these are the final weights, from which no run resumes."""
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
    """The answer; empty without a node."""
    agent: str
    """Agent that wrote it; empty without a node."""
    rule: str
    """Rule that chose the node among all verified ones; it never uses private tests."""
    passed: int
    """Public tests that the program passes, out of `tests`."""
    tests: int
    """Public tests of the problem."""
    private_passed: bool | None
    """Whether the program passes all private tests, not used before; None without a node."""
    ended: str
    """Why the search opened no more nodes: nodes, tokens, seconds, solved, stopped or failed."""
    nodes: int
    """Number of nodes that were written."""
    tokens: int
    """Output tokens of these nodes."""
    seconds: float
    """Wall time of the search."""
    reward: float | None = None
    """Score of the program by the reward model, from 0 to 1, if there is one."""


class HealthChanged(Payload, tag="health"):
    """A health warning of the run that opened or closed, emitted after the `step.end` at which a
    rule of `engine.health` changed its answer. A rule has at most one open warning per agent."""

    rule: str
    """Name of the rule."""
    state: HealthState
    """Whether the warning opened or closed."""
    step: int
    """Last finished step when the warning opened or closed."""
    title: str
    """Name of the rule for people."""
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
    """Resources that the engine and all processes below it use, about every 10 s."""

    cpu_percent: float
    """Percent of one core, the mean since the previous sample."""
    memory_mb: float
    """Resident memory in MiB, summed over the processes."""
    gpu_percent: float | None = None
    """Utilisation of the GPU; sent by external engines only, Grove's own has it in `by_node`."""
    gpu_memory_mb: float | None = None
    """Used memory of the GPU in MiB, as above."""
    by_node: dict[str, float] = {}
    """Readings per node of the cluster, `METRIC.NODE`, and per GPU, `METRIC.NODE:INDEX`:
    node_cpu_percent, node_memory_*, node_disk_*, node_network_*, gpu_percent, gpu_memory_*,
    gpu_power_w (`engine.run.node_readings`)."""


class LogLine(Payload, tag="log.line"):
    """A message for people."""

    level: str
    """`debug`, `info`, `warning` or `error`."""
    message: str
    """Its text, which may have several lines."""


class ErrorRaised(Payload, tag="error"):
    """What made the run fail, emitted before its `run.state`."""

    message: str
    """First cause, in one sentence."""
    traceback: str = ""
    """Python's traceback; of a process that died, the last lines of its output."""
    phase: str = ""
    """Phase that failed: one of `StepEnded.phases`, or `start`; empty if unknown."""
    agent: str = ""
    """Agent whose actor failed; empty if it was none."""
    rank: int | None = None
    """Learner rank that failed."""


class LoggedTable(msgspec.Struct, frozen=True):
    """A table as it was logged; every row has as many cells as there are columns."""

    columns: list[str]
    """Headings."""
    rows: list[list[str | float | bool | None]]
    """Cells, row by row."""
    left_out: int = 0
    """Rows that the client left out, beyond its limit."""


class LoggedHistogram(msgspec.Struct, frozen=True):
    """A histogram: bin i counts values from `edges[i]` to `edges[i + 1]`."""

    edges: list[float]
    """Edges of the bins in ascending order, one more than bins."""
    counts: list[float]
    """Number of values in each bin."""


class LoggedImage(msgspec.Struct, frozen=True):
    """A picture, as the bytes of its file in base64."""

    format: Literal["png", "jpeg"]
    """Format of the file."""
    data: str
    """Bytes of the file, in base64."""
    caption: str = ""
    """Text that is shown below it."""


class MetricLogged(Payload, tag="metric.logged"):
    """Values that a program logged at a step, by names of its own: the open kind, whose names no
    other kind lists. A name may be logged again at any step; the newest counts."""

    step: int
    """The program's own step."""
    numbers: dict[str, float] | UnsetType = UNSET
    """Finite numbers; each name is a chart."""
    nonfinite: dict[str, Literal["nan", "inf", "-inf"]] | UnsetType = UNSET
    """Numbers that JSON cannot write, and no chart can show."""
    texts: dict[str, str] | UnsetType = UNSET
    """Texts by name."""
    tables: dict[str, LoggedTable] | UnsetType = UNSET
    """Tables by name."""
    histograms: dict[str, LoggedHistogram] | UnsetType = UNSET
    """Histograms by name."""
    images: dict[str, LoggedImage] | UnsetType = UNSET
    """Pictures by name."""


class RunDescribed(Payload, tag="run.described"):
    """What another program says about its run (`grove.init`, `grove.config`, `grove.summary`): each
    field that is there is merged into, or replaces, what was said before."""

    config: dict[str, Any] | UnsetType = UNSET
    """Settings of that program, merged by their first key."""
    summary: dict[str, Any] | UnsetType = UNSET
    """Final values that it sets itself, merged so too."""
    tags: list[str] | UnsetType = UNSET
    """Tags of the run; they replace the earlier ones."""
    notes: str | UnsetType = UNSET
    """Notes of the run, which replace the earlier ones."""


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
    """One line of the log; `time` is in Unix seconds, `payload` as JSON has it."""

    seq: int
    time: float
    kind: str
    tree: int | None
    node: int | None
    payload: dict[str, Any]

    def typed(self) -> Payload:
        """Returns the payload as its class; raises `msgspec.ValidationError` if it does not fit."""
        return msgspec.convert({"type": self.kind, **self.payload}, KINDS[self.kind])
