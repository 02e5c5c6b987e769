"""Token ids of conversations, by the chat template of a tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.resources.model_files.templates import render

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def conversation_ids(
    tokenizer: PreTrainedTokenizerBase,
    messages: Sequence[Mapping[str, Any]],
    *,
    add_generation_prompt: bool = False,
    now: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[int]:
    """Returns the ids that the tokenizer's own `apply_chat_template` returns, which would run the
    template in this process. `now`: the local time that the template writes (`engine.run.clock`);
    `options`: variables for the template (`agents.NAME.template_options`).

    Raises:
        TemplateFailed: the template has an error, raises one, or exceeds a limit.
        ValueError: the tokenizer has several templates and none is the default.
    """
    text = render(
        tokenizer.get_chat_template(),
        messages,
        tokenizer.special_tokens_map,
        add_generation_prompt=add_generation_prompt,
        now=now,
        options=options,
    )
    return tokenizer(text, add_special_tokens=False)["input_ids"]
