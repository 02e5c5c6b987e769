"""Construction of the errors of a GGUF file."""

from __future__ import annotations

from pathlib import Path

from engine.policy.models.load import ModelError

COPY_AGAIN = "copy the file again, whole"
CONVERT_AGAIN = "convert the model again with llama.cpp's convert_hf_to_gguf.py"
_MOST_SHOWN = 100


def refusal(file: Path, what: str, fault: str, remedy: str) -> ModelError:
    """Returns the error of a field or tensor `what` of a file."""
    return ModelError(f"{file}: {what}: {fault}; {remedy}")


def shown(value: object) -> str:
    """Returns a value of a file as printable text of bounded length."""
    if isinstance(value, str):
        value = value[:_MOST_SHOWN]
    text = " ".join(repr(value).split())
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "..."
