"""Loads a model with every key that transformers and peft know, set to a path and to the name of a
class, and writes what was opened outside: `python -m tests.engine.policy.watched ROOT SECRET`.

ROOT/model is a model, and SECRET a file outside of it that must never be opened, by Python (audit
hook) or by Rust (inotify).
"""

from __future__ import annotations

import ctypes
import dataclasses
import inspect
import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

import peft
from transformers import (
    CONFIG_MAPPING,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    LlamaForCausalLM,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
)
from transformers.models.auto.tokenization_auto import (
    TOKENIZER_MAPPING_NAMES,
    tokenizer_class_from_name,
)

from engine.config.model_settings import known
from engine.policy.models.load import ADAPTER_CONFIG, ModelError, load_policy

LOADERS = (AutoModelForCausalLM, AutoTokenizer, GenerationConfig, LlamaForCausalLM,
           PreTrainedConfig, PreTrainedTokenizerFast, peft.PeftModel)  # fmt: skip
OLD = {
    "_attn_implementation", "_attn_implementation_internal", "_adapter_model_path",
    "additional_chat_templates", "adapter_path", "attn_implementation", "auto_map",
    "custom_generate", "custom_pipelines", "experts_implementation", "fast_tokenizer_files",
    "fusion_config", "init_inputs", "is_local", "kernel_config", "quantization_config",
    "special_tokens_map_file", "tokenizer_class", "tokenizer_file", "tokenizer_object",
    "transformers_weights", "trust_remote_code", "vocab", "vocab_file", "_name_or_path",
}  # fmt: skip
"""Keys that the libraries read without naming them in a signature."""
IN_OPEN = 0x20


def parameters(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters)


def every_key() -> dict[str, set[str]]:
    loading = OLD.union(*(parameters(kind.from_pretrained) for kind in LOADERS))
    configs = {field.name for kind in CONFIG_MAPPING.values() for field in dataclasses.fields(kind)}
    tokenizers = set()
    for name in {name for name in TOKENIZER_MAPPING_NAMES.values() if name}:
        for kind in (tokenizer_class_from_name(name) or str).__mro__[:-1]:
            tokenizers |= parameters(kind.__init__) if "__init__" in vars(kind) else set()
            tokenizers |= set(getattr(kind, "vocab_files_names", None) or ())
    lora = {field.name for field in dataclasses.fields(peft.LoraConfig)}
    return {
        "config.json": loading
        | configs
        | set(vars(PreTrainedConfig()))
        | set(known("config.json")),
        "generation_config.json": loading | set(vars(GenerationConfig())),
        "tokenizer_config.json": loading | tokenizers | set(known("tokenizer_config.json")),
        "special_tokens_map.json": loading | tokenizers,
        ADAPTER_CONFIG: loading | lora,
    }


class Watch:
    """What is opened while `on`."""

    def __init__(self, allowed: tuple[str, ...], secret: str):
        self.on, self.opened, self._allowed = False, [], allowed
        libc = ctypes.CDLL(None, use_errno=True)
        self._events = libc.inotify_init1(os.O_NONBLOCK)
        assert libc.inotify_add_watch(self._events, secret.encode(), IN_OPEN) > 0
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = str(Path(os.fsdecode(arguments[0])).absolute())
            if not path.startswith(self._allowed):
                self.opened.append(path)
        elif event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system"):
            self.opened.append(f"{event} {arguments}")

    def opens_of_the_secret(self) -> int:
        try:
            return len(os.read(self._events, 1 << 16)) // 16
        except BlockingIOError:
            return 0


def an_adapter(root: Path) -> Path:
    base = load_policy(str(root / "model")).model
    options = peft.LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM")
    peft.get_peft_model(base, options).save_pretrained(root / "adapted")
    file = root / "adapted" / ADAPTER_CONFIG
    settings = json.loads(file.read_text()) | {"base_model_name_or_path": str(root / "model")}
    file.write_text(json.dumps(settings))
    return root / "adapted"


def tries(file: str, keys: set[str], value: str) -> list[dict[str, str]]:
    """Returns settings to load with: what never reaches a loader is set at once, the rest one by
    one, since a refusal hides what comes after it. A text for a number is refused before
    (tests/engine/config/test_model_settings.py)."""
    kinds = known(file)
    together = {key for key in keys if kinds.get(key, "note") == "note"}
    together -= {"quantization_config", "base_model_name_or_path"}
    alone = {key for key in keys - together if kinds.get(key) != "number"}
    if file == ADAPTER_CONFIG:  # what is not of plain LoRA is refused
        alone |= {key for key in together if key in kinds}
        together -= alone
    return [dict.fromkeys(sorted(together), value), *({key: value} for key in sorted(alone))]


def main() -> None:
    root, secret = Path(sys.argv[1]), sys.argv[2]
    adapter, model = an_adapter(root), root / "model"
    load_policy(str(adapter))  # whatever is imported late
    keys = every_key()
    libraries = (sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), str(Path.cwd()))
    watch = Watch((f"{model}/", f"{adapter}/", *libraries), secret)
    loaded = 0
    for file, names in keys.items():
        folder = adapter if file == ADAPTER_CONFIG else model
        path = folder / file
        before = path.read_text() if path.is_file() else None
        for value in (secret, "BertTokenizer"):
            for settings in tries(file, names, value):
                path.write_text(json.dumps(json.loads(before or "{}") | settings))
                watch.on = True
                try:
                    load_policy(str(folder))
                    loaded += 1
                except ModelError:
                    pass
                watch.on = False
        path.unlink()
        if before is not None:
            path.write_text(before)
    result = {"opened": watch.opened, "opens of the secret": watch.opens_of_the_secret()}
    counted = {"files": sorted(keys), "keys": len(set().union(*keys.values())), "loaded": loaded}
    print(json.dumps(result | counted))


if __name__ == "__main__":
    main()
