"""Tests of the lists of known keys of a model's settings files, against the installed libraries and
against files as well-known models have them."""

import json

import pytest
from transformers.models.auto.tokenization_auto import (
    TOKENIZER_MAPPING_NAMES,
    tokenizer_class_from_name,
)

from engine.config.model_settings import SettingsFault, known, loadable, refuse_unknown
from engine.config.model_settings.sizes import check_sizes
from tests.helpers.known_settings import FOLDER, lists

PATH = "/etc/hostname"
FILES = ("config.json", "generation_config.json", "adapter_config.json", "tokenizer_config.json",
         "special_tokens_map.json")  # fmt: skip


def test_the_lists_are_those_of_the_installed_libraries():
    for name, text in lists().items():
        assert text == (FOLDER / name).read_text(), "run python -m tests.helpers.known_settings"


@pytest.mark.parametrize("file", FILES)
def test_no_key_lets_a_place_through_to_a_loader(file):
    places = [PATH, "../x", "~/x", ".netrc", "a/b", "a\\b", "https://x.y/z", "org/name", "x" * 2000]
    regular = {"~/x", ".netrc", "a\\b"}  # a pattern of module names is never opened
    for key, kind in known(file).items():
        for place in places if kind != "free" else []:
            if kind == "pattern" and place in regular:
                continue
            for value in (place, [place], {"rope_type": place}, [[place]], {"0": [place]}):
                try:
                    kept = json.dumps(loadable(file, {key: value}))
                except SettingsFault as fault:
                    assert key in fault.what
                    continue
                assert place not in kept.replace("\\\\", "\\"), f"{key} = {value}"


@pytest.mark.parametrize("file", FILES)
def test_every_other_key_is_left_out_at_loading_and_refused_at_an_upload(file):
    for key in ("auto_map", "vocab", "tokenizer_object", "custom_generate", "transformers_weights",
                "a_key_of_tomorrow", "adapter_path", "fusion_config", "state_dict"):  # fmt: skip
        assert loadable(file, {key: "x", "vocab_size": 3} if file == FILES[0] else {key: "x"}) == (
            {"vocab_size": 3} if file == FILES[0] else {}
        )
        with pytest.raises(SettingsFault, match=key) as fault:
            refuse_unknown(file, {key: "x"})
        assert fault.value.remedy


def test_no_argument_of_a_tokenizer_that_names_a_file_is_known():
    names = {name for name in TOKENIZER_MAPPING_NAMES.values() if name}
    kinds = [tokenizer_class_from_name(name) for name in names]
    files = {key for kind in kinds for key in getattr(kind, "vocab_files_names", None) or ()}
    assert {"vocab_file", "merges_file", "tokenizer_file"} <= files
    for key in files | {"vocab", "merges", "fast_tokenizer_files", "spm_file", "emoji_file"}:
        with pytest.raises(SettingsFault, match=key):
            refuse_unknown("tokenizer_config.json", {key: PATH})
        assert not loadable("tokenizer_config.json", {key: PATH})


TOKEN = {"content": "<s>", "lstrip": False, "normalized": False, "rstrip": False,
         "single_word": False, "special": True}  # fmt: skip
LLAMA_3 = {
    "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
    "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "head_dim": 64,
    "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
    "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": False,
    "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16,
    "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "rope_theta": 500000.0, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
    "transformers_version": "4.45.0.dev0", "use_cache": True, "vocab_size": 128256,
    "_name_or_path": "/home/someone/checkpoints/llama",
}  # fmt: skip
CONFIGS = {
    "Llama 3.2": LLAMA_3,
    "SmolLM2": LLAMA_3 | {
        "is_llama_config": True, "rope_interleaved": False, "rope_scaling": None,
        "transformers.js_config": {"dtype": "q4", "kv_cache_dtype": {"q4f16": "float16"}},
        "_name_or_path": "HuggingFaceTB/SmolLM2", "pad_token_id": 2},
    "Qwen2.5": {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 896,
        "intermediate_size": 4864, "max_window_layers": 21, "num_attention_heads": 14,
        "num_hidden_layers": 24, "num_key_value_heads": 2, "sliding_window": 32768,
        "use_sliding_window": False, "use_mrope": False, "vocab_size": 151936,
        "attention_dropout": 0.0, "hidden_act": "silu", "rms_norm_eps": 1e-06,
        "unsloth_fixed": True, "unsloth_version": "2025.3.19"},
    "Qwen3": {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "head_dim": 128,
        "hidden_size": 1024, "intermediate_size": 3072, "num_attention_heads": 16,
        "num_hidden_layers": 28, "num_key_value_heads": 8, "rope_scaling": None,
        "layer_types": ["full_attention"] * 28, "vocab_size": 151936, "dtype": "bfloat16"},
    "Gemma 3": {
        "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "head_dim": 256,
        "attn_logit_softcapping": None, "cache_implementation": "hybrid", "hidden_size": 640,
        "final_logit_softcapping": None, "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 256, "rope_local_base_freq": 10000.0, "sliding_window": 512,
        "sliding_window_pattern": 6, "_sliding_window_pattern": 6, "intermediate_size": 2048,
        "num_attention_heads": 4, "num_hidden_layers": 18, "num_key_value_heads": 1,
        "use_bidirectional_attention": False, "vocab_size": 262144, "rope_theta": 1000000.0,
        "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
        "attn_implementation": "eager"},
    "Mistral": {
        "architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 4096,
        "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 32000},
    "Phi 3": {
        "architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "embd_pdrop": 0.0,
        "resid_pdrop": 0.0, "original_max_position_embeddings": 4096, "pad_token_id": 32000,
        "rope_scaling": {"long_factor": [1.1, 2.2], "short_factor": [1.0], "type": "longrope"}},
    "GPT-2": {
        "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
        "attn_pdrop": 0.1, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024,
        "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257,
        "summary_activation": None, "summary_first_dropout": 0.1, "summary_type": "cls_index",
        "summary_proj_to_labels": True, "summary_use_proj": True, "resid_pdrop": 0.1,
        "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}},
    "BLOOM": {
        "apply_residual_connection_post_layernorm": False, "bias_dropout_fusion": True,
        "architectures": ["BloomForCausalLM"], "masked_softmax_fusion": True, "n_embed": 1024,
        "model_type": "bloom", "num_attention_heads": 16, "offset_alibi": 100, "seq_length": 2048,
        "skip_bias_add": True, "unk_token_id": 0, "n_layer": 24, "n_inner": None},
    "DeepSeek V3": {
        "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
        "aux_loss_alpha": 0.001, "ep_size": 1, "first_k_dense_replace": 3, "kv_lora_rank": 512,
        "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "scoring_func": "sigmoid",
        "seq_aux": True, "topk_method": "noaux_tc", "num_nextn_predict_layers": 1,
        "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0,
                         "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096,
                         "type": "yarn"}},
    "Mamba 2": {
        "architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2", "chunk_size": 256,
        "time_step_limit": [0.0, float("inf")], "time_step_rank": 256, "rms_norm": True,
        "hidden_act": "silu", "n_groups": 8, "state_size": 128, "head_dim": 64},
    "GPT-OSS": {
        "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "experts_per_token": 4,
        "initial_context_length": 4096, "swiglu_limit": 7.0, "num_local_experts": 32,
        "layer_types": ["sliding_attention", "full_attention"], "router_aux_loss_coef": 0.9,
        "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "rope_type": "yarn",
                         "original_max_position_embeddings": 4096, "truncate": False}},
}  # fmt: skip
TOKENIZERS = {
    "Llama 3.2": {
        "added_tokens_decoder": {"128000": TOKEN}, "bos_token": "<|begin_of_text|>",
        "chat_template": "{{- bos_token }}", "clean_up_tokenization_spaces": True,
        "eos_token": "<|eot_id|>", "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": 131072, "tokenizer_class": "PreTrainedTokenizerFast"},
    "Qwen2.5": {
        "add_bos_token": False, "add_prefix_space": False, "additional_special_tokens": ["<|x|>"],
        "bos_token": None, "eos_token": "<|im_end|>", "errors": "replace", "pad_token": "<|e|>",
        "split_special_tokens": False, "tokenizer_class": "Qwen2Tokenizer", "unk_token": None},
    "Gemma 3": {
        "add_bos_token": True, "add_eos_token": False, "boi_token": "<start_of_image>",
        "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>", "mask_token": None,
        "extra_special_tokens": {"boi_token": "<start_of_image>"}, "sp_model_kwargs": None,
        "model_max_length": int(1e30), "spaces_between_special_tokens": False,
        "processor_class": "Gemma3Processor", "use_default_system_prompt": False},
    "DeepSeek distilled": {
        "add_bos_token": True, "add_eos_token": False, "legacy": True,
        "bos_token": {"__type": "AddedToken", **TOKEN}, "sp_model_kwargs": {}, "unk_token": None,
        "model_max_length": 16384, "tokenizer_class": "LlamaTokenizerFast"},
    "Granite": {
        "errors": "replace", "padding_side": "left", "vocab_size": 49152, "pad_token_id": 0,
        "tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False},
    "Mistral": {
        "chat_template": [{"name": "default", "template": "{{ x }}"}], "padding_side": "left",
        "tokenizer_file": None, "special_tokens_map_file": None, "name_or_path": "org/name"},
    "of transformers 5": {
        "backend": "tokenizers", "is_local": True, "local_files_only": False,
        "tokenizer_class": "TokenizersBackend", "eos_token": "<|end|>", "model_max_length": 512},
}  # fmt: skip
GENERATIONS = (
    {"_from_model_config": True, "bos_token_id": 1, "eos_token_id": [1, 2], "do_sample": True,
     "temperature": 0.6, "top_p": 0.9, "top_k": 50, "transformers_version": "4.45.0",
     "repetition_penalty": 1.05, "cache_implementation": "hybrid", "max_length": 2048},
    {"stop_strings": ["</s>", "a/b"], "early_stopping": "never", "suppress_tokens": [1, 2]},
)  # fmt: skip
ADAPTERS = (
    {"alpha_pattern": {}, "auto_mapping": None, "base_model_name_or_path": "/models/llama",
     "bias": "none", "corda_config": None, "eva_config": None, "exclude_modules": None,
     "fan_in_fan_out": False, "inference_mode": True, "init_lora_weights": True,
     "layer_replication": None, "layers_pattern": None, "layers_to_transform": None,
     "loftq_config": {}, "lora_alpha": 16, "lora_bias": False, "lora_dropout": 0.05,
     "megatron_config": None, "megatron_core": "megatron.core", "modules_to_save": None,
     "peft_type": "LORA", "r": 8, "rank_pattern": {"model.layers.0.self_attn.q_proj": 4},
     "revision": None, "target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM",
     "trainable_token_indices": None, "use_dora": False, "use_rslora": False},
    {"peft_type": "LORA", "r": 8, "target_modules": r".*\.(q|k)_proj$"},
)  # fmt: skip
PUBLISHED = [
    *(("config.json", one) for one in CONFIGS.values()),
    *(("tokenizer_config.json", one) for one in TOKENIZERS.values()),
    *(("generation_config.json", one) for one in GENERATIONS),
    *(("adapter_config.json", one) for one in ADAPTERS),
    ("special_tokens_map.json", {"bos_token": TOKEN, "eos_token": "</s>",
                                 "additional_special_tokens": ["<a>", TOKEN]}),
]  # fmt: skip


@pytest.mark.parametrize(("file", "settings"), PUBLISHED)
def test_files_of_well_known_models_are_accepted(file, settings):
    refuse_unknown(file, settings)
    kept = loadable(file, settings)
    assert kept == {key: settings[key] for key in kept}
    if file == "config.json":
        assert not {"_name_or_path", "transformers_version"} & kept.keys()


@pytest.mark.parametrize("file", ["config.json", "generation_config.json", "adapter_config.json"])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_refused_with_its_key(file, number):
    key = {"config.json": "rms_norm_eps", "generation_config.json": "temperature"}.get(
        file, "lora_alpha"
    )
    for read in (loadable, refuse_unknown):
        with pytest.raises(SettingsFault, match=f"{key} = {number} must be a finite number; save"):
            read(file, {key: number})
    with pytest.raises(SettingsFault, match="time_step_limit = nan must"):
        loadable("config.json", {"time_step_limit": [0.0, float("nan")]})
    with pytest.raises(SettingsFault, match=r"text_config.rms_norm_eps = -1.0 must be at least 0"):
        loadable("config.json", {"text_config": {"rms_norm_eps": -1.0}})


def test_quantised_weights_and_foreign_kernels_are_refused_at_loading_too():
    for settings, reason in (
        ({"quantization_config": {"bits": 4}}, "quantised weights"),
        ({"attn_implementation": "org/kernel"}, "code from another repository"),
        ({"text_config": {"experts_implementation": {"": "org/kernel"}}}, "another repository"),
        ({"torch_dtype": "load"}, "torch_dtype = 'load' is not a dtype"),
        ({"model_type": "BertTokenizer"}, "is not the type of a causal language model"),
        ({"text_config": {"hidden_act": "/x"}}, "text_config.hidden_act = '/x' must be a plain"),
    ):
        with pytest.raises(SettingsFault, match=reason):
            loadable("config.json", settings)
    assert loadable("config.json", {"attn_implementation": "flash_attention_2"}) == {}
    deep = json.loads('{"text_config": ' * 20 + "1" + "}" * 20)
    with pytest.raises(SettingsFault, match="nested more than 8 times"):
        loadable("config.json", deep)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("Llama 3.2", {"embed": (128256, 2048), "rest": (973_000_000,)}),
        ("Qwen3", {"embed": (151936, 1024), "rest": (440_000_000,)}),
        ("Gemma 3", {"embed": (262144, 640), "rest": (100_000_000,)}),
        ("GPT-2", {"wte": (50257, 768), "wpe": (1024, 768), "rest": (85_000_000,)}),
    ],
)
def test_sizes_of_well_known_models_are_those_of_their_weights(name, shapes):
    check_sizes(CONFIGS[name], shapes)
    with pytest.raises(SettingsFault, match="and the files hold"):
        check_sizes(CONFIGS[name], {"embed": (10, 10)})
