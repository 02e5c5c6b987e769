"""Metadata of small tokenizers, for tiny GGUF files."""

from __future__ import annotations

from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
USER_DEFINED = ["<think>"]
_CORPUS = [
    "def add(numbers):\n    return sum(numbers)\n\n",
    "The quick brown fox doesn't jump over 1234 lazy dogs, they'll sleep.",
    "été naïve 你好 🙂 words words words 10 100 1000",
    "for i in range(10):\n        print(i, i ** 2)\r\n\tif i == 3: break",
]


def byte_level(pre: str | None = "smollm", size: int = 400) -> dict[str, Any]:
    """Returns metadata of a byte-level BPE that was trained on a few lines."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(SPECIAL) - len(USER_DEFINED),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    learned = tokenizer.get_vocab()
    tokens = SPECIAL + sorted(learned, key=learned.__getitem__) + USER_DEFINED
    kinds = [3] * len(SPECIAL) + [1] * len(learned) + [4] * len(USER_DEFINED)
    import json

    merges = [" ".join(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    values = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}",
    }
    return values if pre is None else {**values, "tokenizer.ggml.pre": pre}
