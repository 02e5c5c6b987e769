"""Check of a model's chat templates: each is rendered once, in a process with limits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.config.model_settings import SettingsFault, refuse_mark
from engine.resources.model_files.templates import (
    TemplateTooLarge,
    check_config_templates,
    check_template,
    default_failure,
    special_tokens,
)
from webapp.registry.model_files.safetensors import WeightsError
from webapp.registry.model_files.settings_files import check_text

if TYPE_CHECKING:
    from webapp.registry.model_files.layout import ModelFile


def check_chat_templates(config_file: ModelFile, file: ModelFile | None) -> tuple[str, ...]:
    """Checks the templates of a checked tokenizer_config.json and of chat_template.jinja. Returns a
    warning if the one that counts fails for every conversation: a run needs its own one.

    Raises:
        WeightsError: a template exceeds a limit, or begins with a byte order mark.
    """
    config = json.loads(check_text(config_file))
    at = config_file.name
    try:
        check_config_templates(config)
        if file is None:
            failure = default_failure(config)
        else:
            at, text = file.name, check_text(file)
            refuse_mark(text)
            failure = check_template(text, special_tokens(config))
    except (TemplateTooLarge, SettingsFault) as error:
        raise WeightsError(at, error.what, error.remedy) from None
    if failure is None:
        return ()
    return (f"{at}: the chat template fails for every conversation: {failure}",)
