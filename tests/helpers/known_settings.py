"""Lists of `engine.config.model_settings`, derived from the installed libraries:
`python -m tests.helpers.known_settings` writes them.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import engine.config.model_settings

FOLDER = Path(engine.config.model_settings.__file__).parent
PARTS = ("type", "mrope_section", "mrope_interleaved", "short_mscale", "long_mscale", "mscale",
         "mscale_all_dim", "truncate", "finetuned", "alpha", "kda_layers", "full_attn_layers",
         "short_conv_kernel_size")  # fmt: skip
"""Keys within published `rope_scaling` and the like that transformers reads, but does not
annotate."""
PLACES = {
    "token", "revision", "cache_dir", "force_download", "proxies", "local_files_only", "subfolder",
    "repo_id", "commit_message", "trust_remote_code", "gguf_file", "name_or_path", "_commit_hash",
    "_from_auto", "_from_pipeline", "_configuration_file", "return_unused_kwargs", "architecture",
    "model_args",
}  # fmt: skip
"""Arguments of loaders, and those that timm opens: never settings of a model."""
CONFIG_NOTES = (
    "_attn_implementation_autoset", "_flash_attn_2_enabled", "_name_or_path",
    "_sliding_window_pattern", "aux_loss_alpha", "bf16", "bias_dropout_fusion", "ep_size",
    "experts_per_token", "finetuning_task", "fp16", "fp32", "fused_add_norm",
    "gradient_checkpointing", "id2label", "init_config", "initial_context_length",
    "is_llama_config", "label2id", "masked_softmax_fusion", "max_sequence_length", "num_labels",
    "offset_alibi", "onnx", "pad_vocab_size_multiple", "prefix", "pruned_heads", "rms_norm",
    "rope_interleaved", "rope_ratio", "rotary", "rotary_scaling_factor", "seq_aux",
    "seq_length", "skip_bias_add", "skip_bias_add_qkv", "softmax_dtype", "ssm_cfg",
    "task_specific_params", "tf_legacy_loss", "tie_encoder_decoder", "tokenizer_class",
    "torchscript", "transformers.js_config", "transformers_version", "unk_token_id",
    "unsloth_fixed", "unsloth_version", "use_bfloat16", "use_dynamic_ntk", "use_flash_attn",
    "use_logn_attn", "use_mrope",
)  # fmt: skip
"""Keys of published config.json files that say nothing about the model that is loaded."""
CONFIG_KINDS = {
    "model_type": "model_type", "dtype": "dtype", "torch_dtype": "dtype",
    "attn_implementation": "implementation", "experts_implementation": "implementation",
    "vocabulary_map": "map", "quantization_config": "note", "type": "text", "rope_type": "rope",
    "hidden_act": "activation", "hidden_activation": "activation",
    "activation_function": "activation",
    "hybrid_override_pattern": "text", "mtp_hybrid_override_pattern": "text",
    "index_topk_pattern": "text", "problem_type": "text", "name": "text",
    "attention_types": "text", "attention_layers": "text",
}  # fmt: skip
GENERATION_KINDS = {
    "early_stopping": "text", "cache_implementation": "text", "stop_strings": "free",
    "num_assistant_tokens_schedule": "text", "transformers_version": "note", "dola_layers": "text",
    "speculation_type": "text", "constraints": "null", "compile_config": "null",
    "continuous_batching_config": "null", "cache_config": "null", "watermarking_config": "null",
    "sequence_bias": "map", "_from_model_config": "number",
}  # fmt: skip
ADAPTER_KINDS = {
    "base_model_name_or_path": "note", "auto_mapping": "note", "revision": "note",
    "peft_version": "note", "megatron_core": "note", "peft_type": "text", "task_type": "text",
    "bias": "text", "target_modules": "pattern", "exclude_modules": "pattern",
    "modules_to_save": "pattern", "layers_pattern": "pattern", "rank_pattern": "pattern",
    "alpha_pattern": "pattern", "target_parameters": "pattern", "init_lora_weights": "text",
    "trainable_token_indices": "map", "megatron_config": "note", "runtime_config": "note",
}  # fmt: skip


def lists() -> dict[str, str]:
    """Returns the text of each derived list, by file name."""
    from transformers import GenerationConfig

    keys, types = _of_configs()
    generation = dict.fromkeys(vars(GenerationConfig()), "number") | GENERATION_KINDS
    notes = {key: "note" for key in (*generation, *CONFIG_NOTES) if key not in keys}
    config = keys | notes | CONFIG_KINDS | dict.fromkeys(CONFIG_NOTES, "note")
    return {
        "config.txt": _text(config),
        "generation_config.txt": _text(generation),
        "adapter_config.txt": _text(_of_adapters()),
        "model_types.txt": "".join(f"{name}\n" for name in sorted(types)),
    }


def _of_adapters() -> dict[str, str]:
    from peft import LoraConfig

    names = [field.name for field in dataclasses.fields(LoraConfig)]
    # Further methods have settings of their own, which name modules and files: none of them.
    nested = {name: "note" for name in names if name.endswith("_config")}
    return dict.fromkeys(names, "number") | nested | ADAPTER_KINDS


def _of_configs() -> tuple[dict[str, str], set[str]]:
    """Returns the kinds of the keys that a causal language model's config or one of its parts has,
    and all their types."""
    from transformers import CONFIG_MAPPING
    from transformers.configuration_utils import ALLOWED_LAYER_TYPES
    from transformers.modeling_rope_utils import RopeParameters
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    keys = dict.fromkeys((*RopeParameters.__annotations__, *PARTS, *ALLOWED_LAYER_TYPES), "number")
    types = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    pending = [CONFIG_MAPPING[name] for name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES]
    seen: set[type] = set()
    while pending:
        kind = pending.pop()
        if kind in seen or kind.__name__ == "AutoConfig" or "Timm" in kind.__name__:
            continue
        seen.add(kind)
        types.add(kind.model_type)
        keys |= dict.fromkeys(_read_by(kind), "number")
        pending += [one for one in kind.sub_configs.values() if isinstance(one, type)]
    for kind in seen:
        for field in dataclasses.fields(kind):
            if _is_text(field):
                keys[field.name] = "text"
    return {key: kind for key, kind in keys.items() if key not in PLACES}, types - {""}


def _is_text(field: dataclasses.Field) -> bool:
    """Returns whether a field may be a text, or holds texts in a list."""
    annotated = re.sub(r"dict\[.*\]", "", str(field.type).replace("<class 'str'>", "str"))
    return "str" in annotated.split("configuration_")[0] or any(_texts(field.default))


def _texts(value: Any) -> Iterator[bool]:
    if isinstance(value, str):
        yield True
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _read_by(kind: type) -> Iterable[str]:
    """Yields fields of a config class, their other names, and what it takes besides (older
    names)."""
    yield from (field.name for field in dataclasses.fields(kind))
    yield from kind.attribute_map
    yield from kind.sub_configs
    for base in kind.__mro__:
        if base.__module__.startswith("transformers."):
            yield from _taken_in(inspect.getfile(base))


@cache
def _taken_in(file: str) -> frozenset[str]:
    """Returns the keys that a module takes out of further arguments."""
    taken = r'kwargs(?:\.(?:pop|get|setdefault)\(|\[)\s*"(\w+)"'
    return frozenset(re.findall(taken, Path(file).read_text("utf-8")))


def _text(kinds: dict[str, str]) -> str:
    return "".join(f"{key} {kind}\n" for key, kind in sorted(kinds.items()))


def main() -> None:
    for name, text in lists().items():
        (FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
