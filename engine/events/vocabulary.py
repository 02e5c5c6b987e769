"""The telemetry vocabulary: typed events and the append-only log that holds them.

Invariants:
- `RUN_DIR/events.jsonl` is the truth. One event is one line `{seq, time, kind, tree, node,
  payload}`; seq starts at 1 and grows by exactly 1; a line is flushed before `append` returns.
- A torn last line (the writer was killed) is cut off by the next writer, and never read.
- The vocabulary is additive only.
- A tree's id is the seq of its `tree.open`, so no two trees of a run share one.
- `RunResumed(step=S)` voids what earlier lines say of steps after S: those steps are done again,
  under new tree ids, and whoever folds the log drops them, so that no step counts twice.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class RunState(StrEnum):
    """Where a run stands; `engine` reports running, finished, failed and stopped.

    `label` and `colour` are what every page shows; a colour is the name of a palette entry.
    """

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"

    @property
    def label(self) -> str:
        return self.value.capitalize()

    @property
    def colour(self) -> str:
        return _STATE_COLOURS[self]


_STATE_COLOURS = {
    RunState.QUEUED: "grey",
    RunState.STARTING: "violet",
    RunState.RUNNING: "blue",
    RunState.STOPPING: "amber",
    RunState.STOPPED: "amber",
    RunState.FINISHED: "green",
    RunState.FAILED: "red",
}


class Verdict(StrEnum):
    """How the execution of a program on one test, or on all of them, ended."""

    PASSED = "passed"
    WRONG_ANSWER = "wrong_answer"
    RUNTIME_ERROR = "runtime_error"
    SYNTAX_ERROR = "syntax_error"
    NO_PROGRAM = "no_program"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    KILLED = "killed"
    SANDBOX_FAILURE = "sandbox_failure"

    @property
    def label(self) -> str:
        return self.value.replace("_", " ").capitalize()

    @property
    def colour(self) -> str:
        return _VERDICT_COLOURS[self]


_VERDICT_COLOURS = {
    Verdict.PASSED: "green",
    Verdict.WRONG_ANSWER: "red",
    Verdict.RUNTIME_ERROR: "orange",
    Verdict.SYNTAX_ERROR: "orange",
    Verdict.NO_PROGRAM: "grey",
    Verdict.TIME_LIMIT: "violet",
    Verdict.MEMORY_LIMIT: "violet",
    Verdict.OUTPUT_LIMIT: "violet",
    Verdict.KILLED: "violet",
    Verdict.SANDBOX_FAILURE: "amber",
}


class StopReason(StrEnum):
    """Why a generation ended."""

    END_OF_TEXT = "end_of_text"
    MAX_TOKENS = "max_tokens"
    CONTEXT_LIMIT = "context_limit"


class TestReport(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One public test as the page shows it; `input`, `expected` and `actual` are literals."""

    verdict: Verdict
    input: str
    expected: str
    actual: str = ""
    error: str = ""


class Payload(msgspec.Struct, frozen=True):
    """Base of all payloads. The kind is written once, in `tag`."""


class RunStateChanged(Payload, tag="run.state"):
    state: RunState
    reason: str = ""


class RunResumed(Payload, tag="run.resumed"):
    step: int
    """Last step of the checkpoint; steps after it are void and will be done again."""


class RunWaiting(Payload, tag="run.waiting"):
    name: str
    """What is awaited ("sandbox", "starting Ray"); empty when the wait is over."""
    deadline_seconds: float = 0.0
    """0: none of its own."""
    done: int = 0
    """Of `total`: the programs of an evaluation that are judged."""
    total: int = 0
    """0 of a wait that is not counted."""


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
    """Seconds of training so far in the whole run, waits and evaluation left out."""
    refilled_trees: int = 0
    """Trees grown in place of filtered ones; they are counted in all other figures too."""
    carried_trees: int = 0
    """Trees that were under way when the step had enough; they go on in the next one."""
    trees: int = 0
    """Trees that were credited, filtered and refilled ones too."""


class TreeOpened(Payload, tag="tree.open"):
    step: int
    problem: str
    statement: str
    difficulty: int = 0


class NodeOpened(Payload, tag="node.open"):
    agent: str
    parent: int
    """Node 0 is the root: the problem statement."""
    depth: int
    draws: dict[str, Any]
    """The Thompson draws behind this choice and the posteriors that they were drawn from, as
    recorded by the sampler (`engine.search.tree.Expansion`)."""


class NodeText(Payload, tag="node.text"):
    """What passed between the loop and the agent, word for word; told before the node's close.

    Big, and wanted of one node at a time: pages read it by node and leave it out of the stream.
    """

    prompt: str
    tokens: list[str]
    """Text of the output's tokens, special ones included; the first ones of a long output."""
    logprobs: list[float]
    """Of each of these tokens when it was drawn, natural logarithm."""


class NodeClosed(Payload, tag="node.close"):
    program: str
    verdict: Verdict
    score: float | None
    """None: verification failed technically; the node takes no part in credit."""
    fraction: float
    tests: list[TestReport]
    tokens: int
    stop: StopReason
    mean_logprob: float
    policy_version: int
    seconds: float
    error: str = ""


class NodeCredited(Payload, tag="node.credit"):
    shaped: float
    advantage: float


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
    """Mean policy versions between writing and learning."""
    mismatch: float
    """Mean |log pi_old - log pi_rollout| over the tokens learned from."""
    stale_nodes: int = 0
    shared_with: list[str] = []
    """Other agents that have the same weights, and whose nodes were learned from too."""
    layout: str = ""
    """How rows were laid out in forward passes: padded, packed or prefix."""
    layout_reason: str = ""
    """Why that is not what `training.row_layout` asked for, or empty."""
    row_tokens: int = 0
    """Tokens of the rows, one by one."""
    forwarded_tokens: int = 0
    """Tokens of one forward pass over all of them: more by padding, fewer by shared prefixes."""
    trees: list[int] = []
    """Ids of the trees whose nodes of these agents went into this update."""


class LearnedNode(msgspec.Struct, frozen=True):
    """How the learner saw the tokens of one node, the first ones of a long output as in
    `NodeText`. Three decimals."""

    node: int
    entropy: list[float]
    """Of the learner's distribution at each token, in nats."""
    ratio: list[float]
    """Importance ratio of each token: its probability when it was learned from over that when it
    was drawn."""


class TreeLearned(Payload, tag="tree.learned"):
    """What an update saw of one tree's nodes, token by token; told after the `agent.update`.

    Big, and wanted of one node at a time, as `NodeText`. One event for each tree, since a step has
    many nodes. An update that goes over its batch more than once tells its last look.
    """

    agent: str
    """Owner of the weights that learned."""
    step: int
    version: int
    """After the update."""
    nodes: list[LearnedNode]


class EvaluationResult(Payload, tag="eval.result"):
    step: int
    split: str
    agents: dict[str, float]
    """Pass@1 of each agent alone."""
    standard_errors: dict[str, float]
    problems: int
    tree: float | None = None
    """Pass@1(tree, n): the private verdict of the node that the team's search selects."""
    samples: float | None = None
    """The same for n independent samples of the team: no refinement, no search."""
    tree_nodes: int = 0
    rollouts: int = 0
    tokens: int = 0
    seconds: float = 0.0


class EvaluationOutcomes(Payload, tag="eval.outcomes"):
    """What the `eval.result` of the same step and split says, problem by problem; told after it.

    Big, and wanted where two runs are compared: pages leave it out of the stream.
    """

    step: int
    split: str
    contents: list[str]
    """What each problem is known by: the start of the hash of its content, as hex."""
    outcomes: dict[str, list[float | None]]
    """One value per problem, None where verification failed, by figure: `pass@1/AGENT`,
    `tree/pass@1` and `samples/pass@1` (`engine.evaluation.figures`)."""


class CheckpointSaved(Payload, tag="checkpoint.saved"):
    step: int
    path: str
    final: bool = False
    models: dict[str, str] = {}
    """Directory of each agent's weights, relative to the run directory, when final."""
    validation: float | None = None
    """Mean validation Pass@1 of the agents at this step, if it was measured."""
    best: bool = False
    """No checkpoint before it has a higher one: it is kept until a later one is as good."""


class SearchAnswered(Payload, tag="search.answer"):
    """What a search at test time answers, told once when it ends, whatever ends it. `tree` and
    `node` of the event say which node it is; no node if nothing was verified."""

    program: str
    agent: str
    rule: str
    """By what the node was chosen among all that were verified; private tests are never part."""
    passed: int
    """Public tests that it passes, of so many `tests`."""
    tests: int
    private_passed: bool | None
    """Whether it passes all private tests, which nobody looked at before; None without a node."""
    ended: str
    """Why the search opened no more nodes: nodes, tokens, seconds, solved, stopped or failed."""
    nodes: int
    """That were written."""
    tokens: int
    seconds: float
    reward: float | None = None
    """What the reward model thinks of the program, from 0 to 1, if there is one."""


class SystemSample(Payload, tag="system.sample"):
    cpu_percent: float
    memory_mb: float
    gpu_percent: float | None = None
    gpu_memory_mb: float | None = None
    by_node: dict[str, float] = {}
    """Of each node of the cluster, `METRIC.NODE`, and of each of its GPUs, `METRIC.NODE:INDEX`:
    node_cpu_percent, node_memory_*, node_disk_*, node_network_*, gpu_percent, gpu_memory_*,
    gpu_power_w (`engine.run.node_readings`)."""


class LogLine(Payload, tag="log.line"):
    level: str
    message: str


class ErrorRaised(Payload, tag="error"):
    message: str
    """The first cause, in one sentence."""
    traceback: str = ""
    phase: str = ""
    """What was under way: a phase of `StepEnded.phases`, or `start`; empty if nobody knows."""
    agent: str = ""
    rank: int | None = None
    """Learner rank that failed."""


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
    | SystemSample
    | LogLine
    | ErrorRaised
)

KINDS: dict[str, type[Payload]] = {
    p.__struct_config__.tag: p
    for p in AnyPayload.__args__  # type: ignore[attr-defined]
}


class Event(msgspec.Struct, frozen=True):
    """One line of the log. `time` is Unix seconds."""

    seq: int
    time: float
    kind: str
    tree: int | None
    node: int | None
    payload: dict[str, Any]

    def typed(self) -> Payload:
        """The payload as its class; raises `msgspec.ValidationError` if it does not fit."""
        return msgspec.convert({"type": self.kind, **self.payload}, KINDS[self.kind])
