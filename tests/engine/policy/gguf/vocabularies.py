"""Metadata of small tokenizers, for tiny GGUF files."""

from __future__ import annotations

import io
import json
from typing import Any

import sentencepiece
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
USER_DEFINED = ["<think>"]
_USER_DEFINED_PIECES = ["\u2581" * 2, "\u2581" * 3, "\u2581" * 4, "<start_of_turn>", "\n\n"]
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


def trained_pieces(*, prefix: bool = False) -> sentencepiece.SentencePieceProcessor:
    """Returns a SentencePiece BPE with byte fallback that was trained on a few lines; with `prefix`
    like Llama 2, which puts a space before a text, else like Gemma, which has user-defined ones."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(_CORPUS * 20),
        model_writer=model,
        model_type="bpe",
        vocab_size=420,
        byte_fallback=True,
        user_defined_symbols=[] if prefix else _USER_DEFINED_PIECES,
        add_dummy_prefix=prefix,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        split_digits=True,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def pieces(*, prefix: bool = False) -> dict[str, Any]:
    """Returns metadata of `trained_pieces`, as llama.cpp's converter writes them."""
    trained = trained_pieces(prefix=prefix)
    tokens, scores, kinds = [], [], []
    for index in range(len(trained)):
        piece, kind = trained.id_to_piece(index), 1
        if trained.is_unknown(index):
            kind = 2
        elif trained.is_control(index):
            kind = 3
        elif trained.is_byte(index):
            kind = 6
        elif not prefix and piece in _USER_DEFINED_PIECES:
            kind, piece = 4, piece.replace("\u2581", " ")
        tokens.append(piece)
        scores.append(trained.get_score(index))
        kinds.append(kind)
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": trained.bos_id(),
        "tokenizer.ggml.eos_token_id": trained.eos_id(),
        "tokenizer.ggml.unknown_token_id": trained.unk_id(),
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_space_prefix": prefix,
        "tokenizer.chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}",
    }
