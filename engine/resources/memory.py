"""Memory estimates of a process that generates or learns, in GiB by component.

The sizes follow the code: what `engine.policy` keeps in float32 in addition to the weights of the
forward pass, what FSDP gathers, and what autograd keeps of a Llama-style layer, to the byte
(`Shape.activation_bytes_per_token`). The allocator's overhead and the CUDA context, a GiB or two,
are left out.
"""

from __future__ import annotations

from engine.config.agents import AgentConfig, DecodingWeights
from engine.config.generator_support import uses_vllm
from engine.config.schema import RunConfig
from engine.resources.shapes import Shape, logits_at_once

GIB = 2**30
PROCESS = 0.3
"""GiB that a process uses after importing torch and transformers, measured."""
BATCH_PROMPT_TOKENS = 16384
"""Prompt tokens with which the torch generator starts a batch."""
Parts = dict[str, float]
LEARNING = ("activations", "logits")
"""Components that exist only while a policy learns."""
SHARED = ("generator weights", "decoding copy", *LEARNING)
"""Components that policies of one actor have once: they have one base, and learn in turn."""
COPIED_BYTES = {
    DecodingWeights.MODEL: 0,
    DecodingWeights.AUTO: 2,
    DecodingWeights.FLOAT32: 4,
    DecodingWeights.BFLOAT16: 2,
    DecodingWeights.INT8: 1,
}
"""Bytes per weight of the copy that generates, at most."""


def learner_parts(
    config: RunConfig, agent: AgentConfig, shape: Shape, ranks: int, *, on_cpu: bool = False
) -> Parts:
    """Returns the memory of a process that learns, in addition to the generating weights that it
    holds if it is the only rank."""
    size = number_bytes(config)
    trained = shape.parameters if agent.lora is None else adapter_parameters(agent, shape)
    longest = longest_row(agent)
    tokens = max(longest, config.training.micro_batch_tokens)
    written = min(tokens, max(agent.sampling.max_new_tokens, tokens // 2))
    logits = min(logits_at_once(shape.vocabulary, on_cpu=on_cpu), shape.vocabulary * written)
    parts = {
        # With one rank, the float32 copies that the optimizer steps
        # (`engine.policy.models.precision`); shards are float32 already.
        "trained weights": (4 if ranks > 1 or size < 4 else 0) * trained / ranks,
        "gradients": (4 if ranks > 1 or size == 4 else size + 4) * trained / ranks,
        "optimizer": 8 * trained / ranks,
        "activations": _activations(config, shape) * tokens,
        # Of the chunk in memory: logits, their softmax in float32 and its steps, and gradients.
        "logits": (2 * size + 24) * logits,
    }
    if config.loss.reads_reference and agent.lora is None:
        parts["reference"] = size * shape.parameters / ranks
    if heads := config.loss.heads:  # whole on every rank, in float32, with both moments
        parts["heads"] = 16 * sum(head.parameters(shape.width) for head in heads.values())
    if ranks > 1:
        # Two layers at a time, one with its gradient; for the whole pass, embeddings and output
        # matrix with their gradients, and those of the reference.
        roots = 3 if "reference" in parts else 2
        gathered = size * (roots * shape.embeddings + 3 * shape.layer) + 4 * shape.layer
        parts["gathered layers"] = gathered
    return {name: amount / GIB for name, amount in parts.items()}


def generator_parts(config: RunConfig, agent: AgentConfig, shape: Shape, room: float) -> Parts:
    """Returns the memory of an actor that generates, on a device of `room` GiB: the weights, and
    the key-value cache or vLLM's share. vLLM with its own GPUs takes nothing here."""
    parts = {"generator weights": number_bytes(config) * shape.parameters / GIB}
    if copied := COPIED_BYTES[agent.generator.weights]:
        parts["decoding copy"] = copied * shape.parameters / GIB
    if not uses_vllm(agent):
        cached = number_bytes(config) * shape.cached_per_token * longest_row(agent)
        return parts | {"key-value cache": cached * _rows_at_once(config, agent) / GIB}
    if agent.generator.tensor_parallel_size > 1:
        return parts
    share = agent.generator.gpu_memory_utilization * room
    return parts | {"vLLM's share": share or sum(vllm_parts(config, agent, shape).values())}


def vllm_parts(config: RunConfig, agent: AgentConfig, shape: Shape) -> Parts:
    """Returns the minimum of vLLM's share of each of its GPUs: weights, and the cache of one whole
    answer. The rest of the share becomes more cache."""
    gpus, size = agent.generator.tensor_parallel_size, number_bytes(config)
    longest = agent.generator.max_model_len or longest_row(agent)
    return {
        "weights": size * shape.parameters / gpus / GIB,
        "key-value cache of one answer": size * shape.cached_per_token * longest / gpus / GIB,
    }


def peak_parts(resident: Parts, agent: AgentConfig) -> Parts:
    """Returns the peak memory of an actor that generates and learns: vLLM sleeps while the actor
    learns, so only the larger of the two exclusive amounts counts."""
    learns = sum(resident.get(name, 0.0) for name in LEARNING)
    share = resident.get("vLLM's share", 0.0)
    if not uses_vllm(agent) or not share or not learns:
        return resident
    left_out = LEARNING if share > learns else ("vLLM's share",)
    return {name: gib for name, gib in resident.items() if name not in left_out}


def checkpoint_gib(agent: AgentConfig, shape: Shape) -> float:
    """Returns the GiB on rank 0's machine while a checkpoint is written: the float32 weights and
    both moments, gathered from all ranks."""
    return 12 * shape.parameters / GIB if agent.learner_ranks > 1 else 0.0


def adapter_parameters(agent: AgentConfig, shape: Shape) -> int:
    """Returns the number of weights of adapters on every linear layer, the maximum."""
    assert agent.lora is not None
    attention = 4 * shape.width + 2 * shape.head_width * (shape.heads + shape.key_value_heads)
    return agent.lora.rank * shape.layers * (attention + 3 * (shape.width + shape.feed_forward))


def longest_row(agent: AgentConfig) -> int:
    """Returns the tokens of the longest prompt and answer."""
    return agent.sampling.max_prompt_tokens + agent.sampling.max_new_tokens


def number_bytes(config: RunConfig) -> int:
    """Returns the bytes per weight in forward passes."""
    return 2 if config.compute.dtype == "bfloat16" else 4


def _activations(config: RunConfig, shape: Shape) -> int:
    """Returns bytes per token: activations kept of all layers, and the gradients within one."""
    size = number_bytes(config)
    layer = shape.activation_bytes_per_token(size)
    if config.training.recompute_activations:
        return shape.layers * size * shape.width + 2 * layer
    return (shape.layers + 1) * layer


def _rows_at_once(config: RunConfig, agent: AgentConfig) -> int:
    return min(
        max(1, BATCH_PROMPT_TOKENS // agent.sampling.max_prompt_tokens),
        config.training.trees_per_step * config.search.nodes_in_flight,
    )
