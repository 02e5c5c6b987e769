"""What a fork may not change of the run whose checkpoint it starts from.

Pure, and light enough for a page. Invariant: whatever is not refused here starts: weights and
optimizer of the checkpoint are those that the new settings need.
"""

from __future__ import annotations

from typing import Any

_OF_WEIGHTS = {
    "name": "checkpoints hold weights by the agent's name",
    "model": "its weights and tokenizer grew from this model",
    "trainable": "a checkpoint holds weights and optimizer of what learns, and of nothing else",
    "shares_weights_with": "agents that shared weights have one set of them",
    "lora": "adapters of another shape do not fit",
}
"""Settings of an agent that a checkpoint's files hang on, and why."""
_KEPT_OF_LORA = ("rank", "target_modules")


def fork_faults(before: dict[str, Any], now: dict[str, Any]) -> list[dict[str, Any]]:
    """Every refused change between resolved settings: path, value and reason."""
    faults = []
    if len(before["agents"]) != len(now["agents"]):
        counts = len(before["agents"]), len(now["agents"])
        reason = f"the checkpoint holds {counts[0]} agents; a fork has the same, start a new run"
        faults.append({"path": "agents", "value": counts[1], "reason": reason})
    for place, (old, new) in enumerate(zip(before["agents"], now["agents"], strict=False)):
        for name, why in _OF_WEIGHTS.items():
            if (was := _kept(old, name)) != _kept(new, name):
                faults.append(_fault(f"agents.{place}.{name}", was, new[name], why))
    if (was := before["compute"]["dtype"]) != now["compute"]["dtype"]:
        why = "the optimizer's copies of the weights are of its kind"
        faults.append(_fault("compute.dtype", was, now["compute"]["dtype"], why))
    return faults


def _kept(agent: dict[str, Any], name: str) -> Any:
    value = agent[name]
    if name == "lora" and value is not None:
        return {key: list(value[key]) if key == "target_modules" else value[key]
                for key in _KEPT_OF_LORA}  # fmt: skip
    return value


def _fault(path: str, was: Any, value: Any, why: str) -> dict[str, Any]:
    reason = f"the checkpoint was made with {was}: {why}; leave it as it was, or start a new run"
    return {"path": path, "value": value, "reason": reason}
