"""Refusal of references to a Hugging Face hub, from which the site downloads nothing."""

from __future__ import annotations

from engine.config.locations import HUB

_MODEL = (
    "the site downloads nothing from a Hugging Face hub; on your own machine: python -m engine "
    "models pull {value} DIR, then grove push-model DIR --project ID, and choose registry:NAME@1"
)
_DATASET = (
    "the site downloads nothing from a Hugging Face hub; on your own machine: python -m engine "
    "problems pull {value} DIR, then grove push-dataset PROJECT NAME DIR/FILE, and choose "
    "dataset:NAME/1"
)
_SHOWN = 200


def hub_reason(path: str, value: object) -> str:
    """Returns why a setting may not be `hf:ORG/NAME@REVISION`, with the remedy; empty for any other
    value. `path`: the setting's dotted path, or `team`."""
    if not isinstance(value, str) or not value.startswith(HUB):
        return ""
    shown = value if value.isprintable() and len(value) <= _SHOWN else f"{HUB}ORG/NAME@REVISION"
    return (_DATASET if path.endswith("dataset") else _MODEL).format(value=shown)
