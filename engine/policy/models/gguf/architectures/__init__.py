"""Architectures of GGUF files that are imported: config.json and names of tensors of each."""

from __future__ import annotations

from collections.abc import Callable

from engine.policy.models.gguf.architectures import gemma3, llama, qwen
from engine.policy.models.gguf.architectures.plan import Plan
from engine.policy.models.gguf.file import GgufFile

ARCHITECTURES: dict[str, Callable[[GgufFile], Plan]] = {
    "gemma3": gemma3.plan,
    "llama": llama.plan,
    "qwen2": qwen.plan_qwen2,
    "qwen3": qwen.plan_qwen3,
}
"""By `general.architecture`. Each raises `ModelError` for metadata or tensors that do not make a
model of it."""


def plan_of(file: GgufFile) -> Plan:
    """Returns what is written for a file.

    Raises:
        ModelError: its architecture is not supported, or its parts do not make a model.
    """
    metadata = file.metadata
    name = metadata.text("general.architecture")
    if name not in ARCHITECTURES:
        fault = f"{name[:100]!r} is not supported; supported are {', '.join(ARCHITECTURES)}"
        raise metadata.wrong("general.architecture", fault, "give a model of one of these")
    return ARCHITECTURES[name](file)
