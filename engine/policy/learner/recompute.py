"""Recomputation of activations in the backward pass (gradient checkpointing).

Only the input of every layer is kept; the backward pass forwards the layer again (Chen et al.,
arXiv 1604.06174). Only in training: generation keeps no activations anyway.

Invariant: the gradient is the same as without it, dropout included.
"""

from __future__ import annotations

from transformers import PreTrainedModel

from engine.policy.learner.segments import as_attended


def recompute_activations(model: PreTrainedModel) -> None:
    """Enables recomputation whenever the model is in training mode.

    Raises:
        ValueError: the model does not support it.
    """
    if not model.supports_gradient_checkpointing:
        raise ValueError(
            f"training.recompute_activations = true: {type(model).__name__} cannot compute its "
            "layers again; set it to false"
        )
    model.gradient_checkpointing_enable({"use_reentrant": False, "context_fn": as_attended})
    # Only reentrant checkpointing requires a gradient of the embeddings' output.
    model.disable_input_require_grads()
