"""Names of the files of a model in Hugging Face layout: those that the client sends and the site
accepts.

Invariant: the names are a list of what is known; none leads out of a folder, and none is code.
Imports nothing of the site: the client runs where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

FILE_NAME = "model.safetensors"
CONFIG, TOKENIZER, TOKENIZER_CONFIG = "config.json", "tokenizer.json", "tokenizer_config.json"
TEMPLATE = "chat_template.jinja"
INDEX = "model.safetensors.index.json"
LINEAGE = "lineage.json"
REQUIRED = (CONFIG, TOKENIZER, TOKENIZER_CONFIG)
SETTINGS = {"generation_config.json", "special_tokens_map.json"}
TOKENS = {"added_tokens.json", "vocab.json"}
TEXTS = {"merges.txt", "README.md", "LICENSE", "LICENSE.txt", "NOTICE", TEMPLATE}
NAMES = {FILE_NAME, INDEX, *REQUIRED, LINEAGE, *SETTINGS, *TOKENS, *TEXTS}
SHARD = re.compile(r"model-([0-9]{5,6})-of-([0-9]{5,6})\.safetensors")
"""Of five digits, and of six as some programs number them."""
ADAPTER = ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin")
ADAPTER_WEIGHTS = ADAPTER[1:]
MOST_FILES = 600
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".h5", ".msgpack")
_GGUF = ".gguf"


@dataclass(frozen=True, slots=True)
class NameFault:
    """Why files of these names are no model: the file, what is wrong, and the remedy."""

    file: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}; {self.remedy}"


def is_weights(name: str) -> bool:
    """Returns whether a file of this name holds weights."""
    return name == FILE_NAME or SHARD.fullmatch(name) is not None


def is_gguf(name: str) -> bool:
    """Returns whether a file of this name is taken for a GGUF file, which is a whole model and no
    part of this layout."""
    return name.lower().endswith(_GGUF)


def is_of_a_model(name: str) -> bool:
    """Returns whether a model may have a file of this name."""
    return name in NAMES or SHARD.fullmatch(name) is not None


def fault_of_name(name: str) -> NameFault | None:
    """Returns why a model has no file of this name; None if it may have one."""
    if is_of_a_model(name):
        return None
    shown = name if name.isprintable() and len(name) <= 100 else ascii(name[:100])
    if name.endswith(_PICKLES):
        return NameFault(shown, "weights are accepted as safetensors only", "save it as such")
    if name.endswith(".py"):
        return NameFault(shown, "code of a model is never run", "leave it out")
    names = ", ".join(sorted(NAMES))
    what = "is no file of a model in Hugging Face layout"
    remedy = f"leave it out; accepted are {names} and model-00001-of-0000N.safetensors"
    return NameFault(shown, what, remedy)


def fault_of_names(names: Sequence[str]) -> NameFault | None:
    """Returns why files of these names are no complete model; None if they may be one."""
    if len(names) > MOST_FILES:
        return NameFault("files", f"{len(names)} of them", f"{MOST_FILES} at most")
    adapter = next((name for name in ADAPTER if name in names), None)
    whole = CONFIG in names and any(map(is_weights, names))
    if adapter is not None and not whole:
        return _adapter(adapter)
    if extra := next((name for name in ADAPTER_WEIGHTS if name in names), None):
        return _adapter_of_whole(extra)
    for index, name in enumerate(names):
        if fault := fault_of_name(name):
            return fault
        if name in names[:index]:
            return NameFault(name, "is given twice", "give each file once")
    for name in REQUIRED:
        if name not in names:
            return NameFault(name, "is missing", "every model has one")
    return _fault_of_weights(names)


def part_of_folder(names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Returns which files of a folder are the model's, and why each of the others is left out, by
    name. Of a folder with other weights alone, and of one with an adapter's, these are among the
    first, to be refused."""
    left_out = {
        n: fault.what for n in names if n not in ADAPTER_WEIGHTS and (fault := fault_of_name(n))
    }
    if not any(is_weights(name) for name in names):
        other = [name for name in names if name.endswith((*_PICKLES, _GGUF)) or name in ADAPTER]
        for name in other:
            left_out.pop(name, None)
    return [name for name in names if name not in left_out], left_out


def _adapter(name: str) -> NameFault:
    what = "is an adapter (PEFT), which is no model without its base"
    remedy = (
        "merge it into its base (merge_and_unload, then save_pretrained) and give the result; or "
        "name the adapter's folder as a model of the engine, which loads both"
    )
    return NameFault(name, what, remedy)


def _adapter_of_whole(name: str) -> NameFault:
    what = "is an adapter (PEFT) alongside a whole model, which would be stored without it"
    remedy = (
        "merge it into the model (merge_and_unload, then save_pretrained) and give the result; or "
        "leave it out, if the model is the one to store"
    )
    return NameFault(name, what, remedy)


def _fault_of_weights(names: Sequence[str]) -> NameFault | None:
    shards = sorted(name for name in names if SHARD.fullmatch(name))
    if FILE_NAME in names and (shards or INDEX in names):
        remedy = "leave one of the two out"
        return NameFault(FILE_NAME, "is given alongside weights in several files", remedy)
    if FILE_NAME not in names and not shards:
        return NameFault(FILE_NAME, "is missing", "give the weights under this name")
    return _fault_of_shards(shards, INDEX in names) if shards else None


def _fault_of_shards(shards: list[str], has_index: bool) -> NameFault | None:
    if not has_index:
        return NameFault(INDEX, "is missing", "it maps each tensor to its file")
    matches = [match for name in shards if (match := SHARD.fullmatch(name))]
    numbers = {name: int(match[1]) for name, match in zip(shards, matches, strict=True)}
    totals = [int(match[2]) for match in matches]
    total, remedy = totals[0], "give all files of one model, and no others"
    seen: set[int] = set()
    for name, one in zip(shards, totals, strict=True):
        if one != total or not 1 <= numbers[name] <= total or numbers[name] in seen:
            return NameFault(name, f"does not belong to the {total} others", remedy)
        seen.add(numbers[name])
    if missing := next((n for n in range(1, total + 1) if n not in seen), None):
        first, of = matches[0][1], matches[0][2]
        name = f"model-{missing:0{len(first)}}-of-{of}.safetensors"
        return NameFault(name, "is missing", remedy)
    return None
