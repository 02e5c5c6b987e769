"""Check of a model's chat templates: each is rendered once, in a process with limits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.resources.model_files.templates import (
    TemplateTooLarge,
    check_config_templates,
    check_template,
    special_tokens,
)
from webapp.registry.model_files.safetensors import WeightsError
from webapp.registry.model_files.settings_files import check_text

if TYPE_CHECKING:
    from webapp.registry.model_files.layout import ModelFile


def check_chat_templates(config_file: ModelFile, file: ModelFile | None) -> None:
    """Checks the templates of a checked tokenizer_config.json and of chat_template.jinja.

    Raises:
        WeightsError: a template exceeds a limit.
    """
    config = json.loads(check_text(config_file))
    at = config_file.name
    try:
        check_config_templates(config)
        if file is not None:
            at = file.name
            check_template(check_text(file), special_tokens(config))
    except TemplateTooLarge as error:
        raise WeightsError(at, error.what, error.remedy) from None
