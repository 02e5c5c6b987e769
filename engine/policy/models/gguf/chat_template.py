"""Chat template of a GGUF file, or one for a model that has none."""

from __future__ import annotations

from engine.policy.models.gguf.metadata import Metadata
from engine.policy.models.gguf.tokenizer.vocabulary import Vocabulary
from engine.resources.model_files.templates import TemplateTooLarge, check_template

KEY = "tokenizer.chat_template"
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content']"
    " + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
PLAIN = "{% for message in messages %}{{ message['content'] + '\\n' }}{% endfor %}"


def read_template(metadata: Metadata, vocabulary: Vocabulary) -> tuple[str, str]:
    """Returns the Jinja text and its origin: `file`; or, for a file without one, `chatml` if the
    vocabulary has its two tokens, and else `plain`: contents of the messages, each on lines of its
    own, as a base model continues them.

    Raises:
        ModelError: it is no text, or exceeds a limit of `engine.resources.model_files.templates`.
    """
    template = metadata.optional_text(KEY)
    if template is None:
        chatml = {"<|im_start|>", "<|im_end|>"} <= set(vocabulary.tokens)
        return (CHATML, "chatml") if chatml else (PLAIN, "plain")
    if "\0" in template:
        raise metadata.wrong(KEY, "holds a NUL")
    try:
        check_template(template)
    except TemplateTooLarge as error:
        raise metadata.wrong(KEY, error.what, error.remedy) from None
    return template, "file"
