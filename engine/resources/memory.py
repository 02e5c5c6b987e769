"""What takes the memory of a process that writes or learns, in GiB by what takes it.

The sizes are those of the code as it is: what `engine.policy` keeps in float32 beside the weights
that are run, what FSDP gathers, and what autograd keeps of a layer of Llama's kind, to the byte
(`Shape.kept_per_token`). Left out are the allocator's own waste and the CUDA context, a GiB or two.
"""

from __future__ import annotations

from engine.config.agents import AgentConfig
from engine.config.generator_support import uses_vllm
from engine.config.schema import RunConfig
from engine.resources.shapes import LOGITS_AT_ONCE, Shape

GIB = 2**30
PROCESS = 0.3
"""GiB that a process of its own has from importing torch and transformers, measured."""
BATCH_PROMPT_TOKENS = 16384
"""Prompt tokens that the torch generator begins at once."""
Parts = dict[str, float]
LEARNING = ("activations", "logits")
"""What is there only while a policy learns."""


def learning(config: RunConfig, agent: AgentConfig, shape: Shape, ranks: int) -> Parts:
    """Of a process that learns, beside the weights that write if it is the only rank."""
    size = number_bytes(config)
    trained = shape.parameters if agent.lora is None else adapted(agent, shape)
    longest = longest_row(agent)
    tokens = max(longest, config.training.micro_batch_tokens)
    written = min(tokens, max(agent.sampling.max_new_tokens, tokens // 2))
    logits = min(LOGITS_AT_ONCE, shape.vocabulary * written)
    parts = {
        # Of one rank the copies that an optimizer steps (`engine.policy.models.precision`); shards
        # are float32 already.
        "trained weights": (4 if ranks > 1 or size < 4 else 0) * trained / ranks,
        "gradients": (4 if ranks > 1 or size == 4 else size + 4) * trained / ranks,
        "optimizer": 8 * trained / ranks,
        "activations": _activations(config, shape) * tokens,
        # Of the part that exists: logits, their softmax in float32 and its steps, and gradients.
        "logits": (2 * size + 24) * logits,
    }
    if config.loss.kl_coefficient and agent.lora is None:
        parts["reference"] = size * shape.parameters / ranks
    if ranks > 1:
        # Two layers at a time, one with its gradient; embeddings and output, with theirs, and those
        # of the reference, for the whole pass.
        roots = 3 if "reference" in parts else 2
        gathered = size * (roots * shape.embeddings + 3 * shape.layer) + 4 * shape.layer
        parts["gathered layers"] = gathered
    return {name: amount / GIB for name, amount in parts.items()}


def writing(config: RunConfig, agent: AgentConfig, shape: Shape, room: float) -> Parts:
    """Of an actor that writes, on a device of `room` GiB: the weights, and where the answers are
    written. vLLM with GPUs of its own takes nothing here."""
    parts = {"weights that write": number_bytes(config) * shape.parameters / GIB}
    if not uses_vllm(agent):
        cached = number_bytes(config) * shape.cached_per_token * longest_row(agent)
        return parts | {"key-value cache": cached * _rows_at_once(config, agent) / GIB}
    if agent.generator.tensor_parallel_size > 1:
        return parts
    share = agent.generator.gpu_memory_utilization * room
    return parts | {"vLLM's share": share or sum(inside_vllm(config, agent, shape).values())}


def inside_vllm(config: RunConfig, agent: AgentConfig, shape: Shape) -> Parts:
    """What vLLM's share of each of its GPUs must hold at the least: weights, and the cache of one
    whole answer. Whatever is left of it becomes more cache."""
    gpus, size = agent.generator.tensor_parallel_size, number_bytes(config)
    longest = agent.generator.max_model_len or longest_row(agent)
    return {
        "weights": size * shape.parameters / gpus / GIB,
        "key-value cache of one answer": size * shape.cached_per_token * longest / gpus / GIB,
    }


def at_its_most(resident: Parts, agent: AgentConfig) -> Parts:
    """Of an actor that writes and learns: vLLM sleeps while it learns, so of what either takes for
    itself only the larger counts."""
    learns = sum(resident.get(name, 0.0) for name in LEARNING)
    share = resident.get("vLLM's share", 0.0)
    if not uses_vllm(agent) or not share or not learns:
        return resident
    left_out = LEARNING if share > learns else ("vLLM's share",)
    return {name: gib for name, gib in resident.items() if name not in left_out}


def saving(agent: AgentConfig, shape: Shape) -> float:
    """GiB of the machine of rank 0 while a checkpoint is written: the float32 weights and both
    moments, gathered from all ranks."""
    return 12 * shape.parameters / GIB if agent.learner_ranks > 1 else 0.0


def adapted(agent: AgentConfig, shape: Shape) -> int:
    """Weights of adapters on every linear layer, which is the most that they can be."""
    assert agent.lora is not None
    attention = 4 * shape.width + 2 * shape.head_width * (shape.heads + shape.key_value_heads)
    return agent.lora.rank * shape.layers * (attention + 3 * (shape.width + shape.feed_forward))


def longest_row(agent: AgentConfig) -> int:
    """Tokens of the longest prompt and answer."""
    return agent.sampling.max_prompt_tokens + agent.sampling.max_new_tokens


def number_bytes(config: RunConfig) -> int:
    """Of a weight that is run."""
    return 2 if config.compute.dtype == "bfloat16" else 4


def _activations(config: RunConfig, shape: Shape) -> int:
    """Bytes per token: what is kept of all layers, and the gradients within one."""
    size = number_bytes(config)
    layer = shape.kept_per_token(size)
    if config.training.recompute_activations:
        return shape.layers * size * shape.width + 2 * layer
    return (shape.layers + 1) * layer


def _rows_at_once(config: RunConfig, agent: AgentConfig) -> int:
    return min(
        max(1, BATCH_PROMPT_TOKENS // agent.sampling.max_prompt_tokens),
        config.training.trees_per_step * config.search.nodes_in_flight,
    )
