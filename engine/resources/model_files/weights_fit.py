"""Comparison of the tensors of a model with those that its config.json describes, without torch.

A tensor that is missing would be filled with random numbers, and one of another name would be left
out: the model would load, and be another one. Families that are most in use are known tensor by
tensor (`_FAMILIES`, names and shapes of transformers); of all others the layers are counted. The
engine compares every model once more while it loads it, with what transformers itself expects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.config.model_settings.sizes import Shapes

NAMED = 3
"""Tensors that a message names; further ones are counted."""
WRAPPERS = {
    "_orig_mod.": "torch.compile",
    "module.": "DataParallel or DeepSpeed",
    "_fsdp_wrapped_module.": "FSDP",
    "base_model.model.": "peft",
}
"""What is put before each name by that which wraps a module."""
_INNER = {"model.": "a module that contains it"}
"""What may be so before names that do not fit, and is right before others."""
BUFFERS = re.compile(
    r"(^|\.)(inv_freq|(cos|sin)_cached|position_ids|((attn|attention)\.(masked_)?bias))$"
)
"""Names of buffers that older files hold and newer models compute."""
DTYPES = frozenset({"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"})
"""Of the weights that can be loaded, as safetensors names them: floats whose values stand for
themselves."""
UNTIED = (
    "holds an output that differs from its embedding, and config.json ties the two",
    "set tie_word_embeddings to false, or leave the output out",
)
"""What is wrong with such weights, and the remedy."""
_LAYER = re.compile(r"^((?:.*\.)?(?:layers|layer|h|blocks|block))\.([0-9]{1,6})\.")
_LAYER_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")

Sizes = Mapping[str, Any]
Expected = dict[str, tuple[int, ...]]


class WeightsMisfit(ValueError):
    """Weights that are not those of their config.json: what is wrong, and the remedy."""

    def __init__(self, what: str, remedy: str):
        super().__init__(f"{what}; {remedy}")
        self.what, self.remedy = what, remedy


def refuse_misfit(config: Mapping[str, Any], shapes: Shapes) -> None:
    """Compares the tensors of the weight files with config.json.

    Raises:
        WeightsMisfit: names the first tensors that are missing, surplus or of another shape, and
            says how many there are.
    """
    _refuse_wrapped(shapes, WRAPPERS)
    family = _family_of(config, shapes)
    if family is None:
        _refuse_layers(config, shapes)
        return
    expected = _expected(family, config, shapes)
    optional = {family.output} if _is_tied(family, config) else set()
    held = {name: tuple(shape) for name, shape in shapes.items() if not BUFFERS.search(name)}
    refuse_differences(
        missing=expected.keys() - optional - held.keys(),
        surplus=held.keys() - expected.keys(),
        mismatched=[
            (name, shape, expected[name])
            for name, shape in held.items()
            if name in expected and shape != expected[name]
        ],
        held=held,
    )


def tied_names(config: Mapping[str, Any], shapes: Shapes) -> tuple[str, str] | None:
    """Returns the names of embedding and output if config.json ties them and the files hold both,
    which then must be equal; None for families whose tensors are not known."""
    family = _family_of(config, shapes)
    if family is None or not _is_tied(family, config) or family.output not in shapes:
        return None
    embedding = next(iter(_expected(family, config, shapes)))
    return (embedding, family.output) if embedding in shapes else None


def refuse_dtypes(dtypes: Mapping[str, str]) -> None:
    """Checks the dtype of each tensor, by name. Integers would be converted one by one, without the
    scales of the quantisation that they are of.

    Raises:
        WeightsMisfit: names the first tensors that hold no floats.
    """
    odd = [name for name, dtype in dtypes.items() if dtype not in DTYPES]
    if odd := sorted((name for name in odd if not BUFFERS.search(name)), key=_in_order):
        raise WeightsMisfit(
            f"holds {_tensors(len(odd))} of {dtypes[odd[0]]}, which are no weights, or quantised "
            f"ones: {_list(odd)}",
            "give the model before quantisation, in float32, bfloat16 or float16",
        )


def refuse_differences(
    missing: Iterable[str],
    surplus: Iterable[str],
    mismatched: Iterable[tuple[str, Sequence[int], Sequence[int]]],
    held: Iterable[str] = (),
) -> None:
    """Raises `WeightsMisfit` if there are any: names of tensors, and (name, shape in the file,
    shape by config.json). `held` are all names of the files, by which a prefix is recognised."""
    lacking, left = sorted(missing, key=_in_order), sorted(surplus, key=_in_order)
    odd = sorted(mismatched, key=lambda one: _in_order(one[0]))
    if lacking and left and {name.removeprefix("model.") for name in left} >= set(lacking):
        _refuse_wrapped(held, _INNER)
    parts = []
    if lacking:
        what = f"{_tensors(len(lacking))} that config.json describes"
        parts.append(f"lacks {what}: {_list(lacking)}")
    if left:
        what = f"{_tensors(len(left))} that config.json does not describe"
        parts.append(f"holds {what}: {_list(left)}")
    if odd:
        texts = [f"{name} of {_shape(a)} instead of {_shape(b)}" for name, a, b in odd]
        parts.append(f"holds {_tensors(len(odd))} of another shape: {_list(texts)}")
    if parts:
        remedy = "give the config.json and all weights of one model, as save_pretrained writes them"
        raise WeightsMisfit(", and ".join(parts), remedy)


def _refuse_wrapped(names: Iterable[str], wrappers: Mapping[str, str]) -> None:
    """Refuses names most of which begin with what a wrapper puts before them."""
    known = [name for name in names if not BUFFERS.search(name)]
    for prefix, by in wrappers.items():
        wrapped = [name for name in known if name.startswith(prefix)]
        if wrapped and len(wrapped) * 2 > len(known):
            raise WeightsMisfit(
                f"{_tensors(len(wrapped))} begin with {prefix!r}, which {by} puts before the names "
                f"of a model: {_list(sorted(wrapped, key=_in_order))}",
                "save the model inside of it with save_pretrained, or remove the prefix",
            )


def _tensors(count: int) -> str:
    return f"{count:,} tensor{'' if count == 1 else 's'}"


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(name[:200] for name in names[:NAMED])
    return f"{shown}, ..." if len(names) > NAMED else shown


def _shape(sizes: Sequence[int]) -> str:
    return f"[{', '.join(map(str, sizes))}]"


def _in_order(name: str) -> list[tuple[int, str]]:
    """Sorts layer 10 after layer 9."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in name.split(".")]


# ------------------------------------------------------------------ any architecture: its layers


def _refuse_layers(config: Mapping[str, Any], shapes: Shapes) -> None:
    """Refuses weights with another number of layers than config.json says. Models of several stacks
    have settings of their own for each: these are left to the loader."""
    layers = _layers_of(config)
    stacks: dict[str, set[int]] = {}
    for name in shapes:
        if found := _LAYER.match(name):
            stacks.setdefault(found[1], set()).add(int(found[2]))
    if layers is None or len(stacks) != 1:
        return
    # Some models come with layers that predict further tokens, after all others.
    spare = _number(config, "num_nextn_predict_layers") or 0
    needed = set(range(layers))
    ((stack, held),) = stacks.items()
    if needed <= held <= set(range(layers + spare)):
        return
    if missing := sorted(needed - held):
        lacking = _list([f"{stack}.{number}" for number in missing])
        what = f"lacks {len(missing):,} of the {layers:,} layers of config.json: {lacking}"
    else:
        surplus = _list([f"{stack}.{number}" for number in sorted(held - needed)])
        what = f"holds {len(held):,} layers, and config.json describes {layers:,}: {surplus}"
    raise WeightsMisfit(what, "give the config.json and all weights of one model")


def _layers_of(config: Mapping[str, Any]) -> int | None:
    return next((n for key in _LAYER_COUNTS if (n := _number(config, key)) is not None), None)


def _number(config: Mapping[str, Any], key: str) -> int | None:
    inner = config.get("text_config")
    for part in (inner if isinstance(inner, Mapping) else {}, config):
        if type(part.get(key)) is int:
            return part[key]
    return None


# ------------------------------------------------------------- known families: tensor by tensor


@dataclass(frozen=True)
class _Family:
    """A family of models whose tensors are known."""

    prefix: str
    """Of all names but the output's; absent in files of the bare model."""
    output: str
    tied: bool
    """Whether the embedding is also the output unless config.json says otherwise."""
    needs: tuple[str, ...]
    """Sizes that config.json must give; without one the tensors are not known."""
    tensors: Callable[[Sizes], Iterator[tuple[str, tuple[int, ...]]]]
    """(name without prefix, shape) of all tensors but the output."""


_LLAMA_NEEDS = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                "num_attention_heads")  # fmt: skip


def _llama(
    *, norms: Sequence[str] = (), head_norms: bool = False, qkv_bias: bool = False,
    output_bias: bool = True, biases: bool = True,
) -> Callable[[Sizes], Iterator[tuple[str, tuple[int, ...]]]]:  # fmt: skip
    """Decoders of Llama's layout. `qkv_bias`: queries, keys and values always have one;
    `output_bias`: `attention_bias` is about the output projection too; `biases`: `attention_bias`
    and `mlp_bias` are settings of the family."""

    def tensors(c: Sizes) -> Iterator[tuple[str, tuple[int, ...]]]:
        width, inner, heads = c["hidden_size"], c["intermediate_size"], c["num_attention_heads"]
        groups = c.get("num_key_value_heads") or heads
        head = c.get("head_dim") or width // heads
        attention = {"q_proj": (heads * head, width), "k_proj": (groups * head, width),
                     "v_proj": (groups * head, width), "o_proj": (width, heads * head)}  # fmt: skip
        feed_forward = {"gate_proj": (inner, width), "up_proj": (inner, width),
                        "down_proj": (width, inner)}  # fmt: skip
        has_bias = biases and c.get("attention_bias") is True
        yield "embed_tokens.weight", (c["vocab_size"], width)
        yield "norm.weight", (width,)
        for number in range(c["num_hidden_layers"]):
            at = f"layers.{number}."
            for name, shape in attention.items():
                yield f"{at}self_attn.{name}.weight", shape
                if (qkv_bias or has_bias) if name != "o_proj" else (has_bias and output_bias):
                    yield f"{at}self_attn.{name}.bias", shape[:1]
            for name, shape in feed_forward.items():
                yield f"{at}mlp.{name}.weight", shape
                if biases and c.get("mlp_bias") is True:
                    yield f"{at}mlp.{name}.bias", shape[:1]
            for name in ("input_layernorm", "post_attention_layernorm", *norms):
                yield f"{at}{name}.weight", (width,)
            if head_norms:
                yield f"{at}self_attn.q_norm.weight", (head,)
                yield f"{at}self_attn.k_norm.weight", (head,)

    return tensors


def _gpt2(c: Sizes) -> Iterator[tuple[str, tuple[int, ...]]]:
    width = c["n_embd"]
    inner = c.get("n_inner") or 4 * width
    linear = {"attn.c_attn": (width, 3 * width), "attn.c_proj": (width, width),
              "mlp.c_fc": (width, inner), "mlp.c_proj": (inner, width)}  # fmt: skip
    yield "wte.weight", (c["vocab_size"], width)
    yield "wpe.weight", (c["n_positions"], width)
    norms = ["ln_f"]
    for number in range(c["n_layer"]):
        norms += [f"h.{number}.ln_1", f"h.{number}.ln_2"]
        for name, shape in linear.items():
            yield f"h.{number}.{name}.weight", shape
            yield f"h.{number}.{name}.bias", shape[1:]
    for norm in norms:
        yield f"{norm}.weight", (width,)
        yield f"{norm}.bias", (width,)


_OPTIONAL = ("num_key_value_heads", "head_dim", "n_inner")
_GEMMA_NORMS = ("pre_feedforward_layernorm", "post_feedforward_layernorm")
_HEADS = ("num_key_value_heads", "head_dim")
_FAMILIES = {
    "llama": _Family("model.", "lm_head.weight", False, _LLAMA_NEEDS, _llama()),
    "mistral": _Family("model.", "lm_head.weight", False,
                       (*_LLAMA_NEEDS, "num_key_value_heads"), _llama(biases=False)),
    "qwen2": _Family("model.", "lm_head.weight", False, (*_LLAMA_NEEDS, "num_key_value_heads"),
                     _llama(qkv_bias=True, biases=False)),
    "qwen3": _Family("model.", "lm_head.weight", False, (*_LLAMA_NEEDS, *_HEADS),
                     _llama(head_norms=True)),
    "gemma": _Family("model.", "lm_head.weight", True, (*_LLAMA_NEEDS, *_HEADS), _llama()),
    "gemma2": _Family("model.", "lm_head.weight", True, (*_LLAMA_NEEDS, *_HEADS),
                      _llama(norms=_GEMMA_NORMS)),
    "gemma3_text": _Family("model.", "lm_head.weight", True, (*_LLAMA_NEEDS, *_HEADS),
                           _llama(norms=_GEMMA_NORMS, head_norms=True)),
    "granite": _Family("model.", "lm_head.weight", False,
                       (*_LLAMA_NEEDS, "num_key_value_heads"), _llama()),
    "gpt2": _Family("transformer.", "lm_head.weight", True,
                    ("vocab_size", "n_embd", "n_layer", "n_positions"), _gpt2),
}  # fmt: skip
"""By `model_type`; held against transformers itself by tests/engine/resources."""


def _family_of(config: Mapping[str, Any], shapes: Shapes) -> _Family | None:
    """Returns the family whose tensors config.json describes; None if it is not known, or lacks a
    size, or gives what is none."""
    kind = config.get("model_type")
    family = _FAMILIES.get(kind) if isinstance(kind, str) else None
    if family is None or not all(_is_size(config.get(name)) for name in family.needs):
        return None
    given = [config[name] for name in _OPTIONAL if config.get(name) is not None]
    # A number of layers far beyond the tensors is not worth a list of theirs.
    few = (_layers_of(config) or 0) <= len(shapes) + NAMED
    return family if few and all(map(_is_size, given)) else None


def _is_size(value: Any) -> bool:
    return type(value) is int and value > 0


def _expected(family: _Family, config: Mapping[str, Any], shapes: Shapes) -> Expected:
    """Returns the shape of each tensor of the model by name. Files of the bare model, without its
    output, have no prefix."""
    has_prefix = any(name.startswith(family.prefix) for name in shapes)
    prefix = family.prefix if has_prefix else ""
    expected = {f"{prefix}{name}": shape for name, shape in family.tensors(config)}
    embedding = next(iter(expected.values()))
    return expected | {family.output: embedding}


def _is_tied(family: _Family, config: Mapping[str, Any]) -> bool:
    given = config.get("tie_word_embeddings")
    return given if isinstance(given, bool) else family.tied
