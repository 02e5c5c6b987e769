"""Transfer of new weights to a vLLM engine, by vLLM's own mechanisms.

- On a CPU the engine reloads its weights in place (`reload_weights`) from a file.
- On the learner's own GPU they are passed through CUDA IPC, without a copy on the host.
- With GPUs of its own the engine receives them by NCCL.

Names and shapes are those of a checkpoint; adapters are merged into the weights. Invariant: when
`send` returns, the engine has every weight of the model and no other.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import save_file
from transformers import PreTrainedModel
from vllm.distributed.weight_transfer import ParamMeta, WeightSource, WeightTransferTrainerFactory
from vllm.distributed.weight_transfer.base import (
    WeightTransferInitRequest,
    WeightTransferUpdateRequest,
)

from engine.config.deadlines import VLLM_CONTROL
from engine.policy.generators.vllm_engine import VllmEngine
from engine.policy.models.weights import checkpoint_tensors

RECEIVE = "receive new weights"


class Sender(Protocol):
    """Sends the weights of a model to an engine."""

    def send(self, engine: VllmEngine, model: PreTrainedModel) -> None: ...


class ReloadSender:
    """Sends by a file on this machine."""

    def send(self, engine: VllmEngine, model: PreTrainedModel) -> None:
        file = write_weights(model, engine.folder)
        try:
            where = {"weights_path": str(engine.folder)}
            reload = engine.llm.collective_rpc("reload_weights", kwargs=where)
            engine.call(reload, RECEIVE, VLLM_CONTROL)
        finally:
            file.unlink()


class TransferSender:
    """Sends by vLLM's weight transfer: `ipc`, or `nccl` to `receivers` processes."""

    def __init__(self, backend: str, receivers: int):
        self._backend = backend
        self._receivers = receivers
        self._source = _ModelSource()
        self._transfer: Any = None

    def send(self, engine: VllmEngine, model: PreTrainedModel) -> None:
        self._source.model = model
        with torch.no_grad():
            if self._transfer is None:
                self._transfer = WeightTransferTrainerFactory.trainer_init(
                    self.meeting(model), client=Client(engine), source=self._source
                )
            self._transfer.send_weights()

    def meeting(self, model: PreTrainedModel) -> Any:
        """Returns the initial settings that the two sides of a transfer share."""
        if self._backend == "ipc":
            from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo

            # Packed: one buffer at a time, not a second copy of all weights. It must hold the
            # largest weight, which in large models is the embedding, of more than vLLM's 1 GiB.
            largest = max(t.numel() * t.element_size() for _, t in checkpoint_tensors(model))
            size = max(largest, IPCTrainerInitInfo.packed_buffer_size_bytes)
            return IPCTrainerInitInfo(rank=0, packed=True, packed_buffer_size_bytes=size)
        from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo
        from vllm.utils.network_utils import get_ip, get_open_port

        return NCCLTrainerInitInfo(
            rank=0,
            master_address=get_ip(),
            master_port=get_open_port(),
            world_size=1 + self._receivers,
        )


def write_model(model: PreTrainedModel, folder: Path, *, untied: bool) -> None:
    """Writes `config.json`, and with `untied` the weights too, as a checkpoint has them.

    Untied, input and output embeddings are two weights for vLLM. On a CPU it packs the output's a
    second time, and its reload does not update that copy of tied ones (0.32.0).
    """
    config = copy.deepcopy(model.config)
    if untied:
        config.tie_word_embeddings = config.get_text_config().tie_word_embeddings = False
        write_weights(model, folder)
    config.save_pretrained(folder)


def write_weights(model: PreTrainedModel, folder: Path) -> Path:
    """Writes `model.safetensors` with every weight under each of its names."""
    file = folder / "model.safetensors"
    with torch.no_grad():
        tensors = {
            # Cloned: a safetensors file cannot hold two tensors that share memory.
            name: tensor.detach().cpu().contiguous().clone()
            for name, tensor in checkpoint_tensors(model, untied=True)
        }
    save_file(tensors, file, metadata={"format": "pt"})
    return file


class _ModelSource(WeightSource):
    """The weights of `model`, which may change between transfers."""

    model: PreTrainedModel

    def metadata(self) -> list[ParamMeta]:
        return [ParamMeta(name, t.dtype, tuple(t.shape)) for name, t in self]

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        return iter(checkpoint_tensors(self.model))


class Client:
    """The engine's side of a transfer, which vLLM's trainer side may call from any thread."""

    def __init__(self, engine: VllmEngine):
        self._engine = engine

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        request = WeightTransferInitRequest(init_info=init_info)
        self._call(self._engine.llm.init_weight_transfer_engine(request))

    def start_weight_update(self) -> None:
        self._call(self._engine.llm.start_weight_update())

    def update_weights(self, update_info: Any) -> None:
        request = WeightTransferUpdateRequest(update_info=update_info)
        self._call(self._engine.llm.update_weights(request))

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._call(self._engine.llm.finish_weight_update(weight_version))

    def _call(self, coroutine: Any) -> None:
        self._engine.call(coroutine, RECEIVE, VLLM_CONTROL)
