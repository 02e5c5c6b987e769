"""Activations that are computed again for the gradient instead of being kept.

Of every layer only its input is kept; once its gradient is wanted, the layer is forwarded again
(Chen et al., arXiv 1604.06174). Only while a model learns: one that writes keeps nothing anyway.

Invariant: the gradient is that without it, dropout included.
"""

from __future__ import annotations

from transformers import PreTrainedModel

from engine.policy.learner.segments import as_attended


def recompute_activations(model: PreTrainedModel) -> None:
    """From now on, whenever the model is in training mode.

    Raises:
        ValueError: the model has no layers that can do it.
    """
    if not model.supports_gradient_checkpointing:
        raise ValueError(
            f"training.recompute_activations = true: {type(model).__name__} cannot compute its "
            "layers again; set it to false"
        )
    model.gradient_checkpointing_enable({"use_reentrant": False, "context_fn": as_attended})
    # Only the older way of doing it needs the embeddings' output to want a gradient.
    model.disable_input_require_grads()
