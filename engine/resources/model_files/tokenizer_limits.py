"""Limits of a tokenizer.json: how much longer it may make a text, and the parts that do so.

Invariant: what passes makes of N characters at most about `MOST_GROWTH` x N, in reading and in
writing. Every part has to be of a known type; the growth of a sequence is the product of its parts.
A value of a wrong type is refused like one beyond its limit.
"""

from __future__ import annotations

import base64
import re
import struct
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

MOST_GROWTH = 128
"""Of a character. NFKC makes 18 of one, ByteLevel 4 of one: real tokenizers stay below 100."""
MOST_PARTS = 64
"""Of one kind, sequences within sequences included."""
MOST_TEXT = 1_024
"""Characters of one token, prefix, delimiter, replacement or expression."""
MOST_REPEAT = 1_000
"""Of a repetition in a regular expression."""
MOST_WORD = 10_000
"""Characters of a word that a WordPiece model searches, in quadratic time."""
MOST_PADDING = 65_536
MOST_IDS = 64
"""Ids that a post-processor adds."""
_NORMAL_FORM, _BERT, _BYTES = 18, 12, 4
"""Characters that a normal form, a BertNormalizer and ByteLevel make of one."""
_BYTE_SIGN = "\u0120"
"""One of ByteLevel's signs for a byte; normal forms take some of them apart."""
_BLANK = "\u2581"
"""SentencePiece's sign for a space. No normal form and no case changes it."""

_NORMALIZERS = {
    "BertNormalizer", "ByteLevel", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled",
    "Prepend", "Replace", "Strip", "StripAccents",
}  # fmt: skip
_PRE_TOKENIZERS = {
    "BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Digits", "FixedLength", "Metaspace",
    "Punctuation", "Split", "UnicodeScripts", "Whitespace", "WhitespaceSplit",
}  # fmt: skip
_DECODERS = {
    "BPEDecoder", "ByteFallback", "ByteLevel", "CTC", "Fuse", "Metaspace", "Replace", "Strip",
    "WordPiece",
}  # fmt: skip
_POST_PROCESSORS = {"BertProcessing", "ByteLevel", "RobertaProcessing", "TemplateProcessing"}
_KINDS = {
    "normalizer": ("normalizers", _NORMALIZERS),
    "pre_tokenizer": ("pretokenizers", _PRE_TOKENIZERS),
    "post_processor": ("processors", _POST_PROCESSORS),
    "decoder": ("decoders", _DECODERS),
}
"""By key of tokenizer.json: the name of a Sequence's list, and the types of its parts."""
_NORMAL_FORMS = {"Lowercase", "NFC", "NFD", "NFKC", "NFKD"}

Part = Mapping[str, Any]


class TokenizerTooLarge(ValueError):
    """A part of a tokenizer.json that exceeds a limit; the message names it and the remedy."""

    def __init__(self, what: str):
        super().__init__(what)
        self.what = what
        self.remedy = "give a tokenizer without it"

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}"


def refuse_growth(tokenizer: Mapping[str, Any]) -> None:
    """Checks the object of a tokenizer.json.

    Raises:
        TokenizerTooLarge: the first part that exceeds a limit, or is of an unknown type.
    """
    parts = {key: list(_parts(key, tokenizer.get(key))) for key in _KINDS}
    reading = _growth("normalizer", parts["normalizer"])
    reading *= _growth("pre_tokenizer", parts["pre_tokenizer"])
    if reading > MOST_GROWTH:
        raise _too_long("normalizer and pre_tokenizer", reading)
    _growth("decoder", parts["decoder"])
    _refuse_templates(parts["post_processor"])
    _refuse_model(tokenizer.get("model"))
    _refuse_added(tokenizer.get("added_tokens"))
    _refuse_padding(tokenizer.get("padding"), tokenizer.get("truncation"))


def _parts(key: str, value: Any) -> Iterator[Part]:
    """Yields the parts of a sequence, in order."""
    inner, known = _KINDS[key]
    pending, count = [] if value is None else [value], 0
    while pending:
        part = pending.pop()
        kind = part.get("type") if isinstance(part, dict) else None
        if (count := count + 1) > MOST_PARTS:
            raise TokenizerTooLarge(f"{key} has more than {MOST_PARTS} parts")
        if kind == "Sequence" and isinstance(part.get(inner), list):
            pending += reversed(part[inner])
        elif isinstance(kind, str) and kind in known:
            yield part
        else:
            raise TokenizerTooLarge(f"{key}.type = {str(kind)[:60]!r} is not known")


def _growth(key: str, parts: list[Part]) -> int:
    """Returns how many characters the parts make of one, at most.

    Several normal forms in a row count once: the second finds nothing to take apart, unless
    something between them wrote such characters anew.
    """
    growth, is_normal = 1, False
    for part in parts:
        if part["type"] in _NORMAL_FORMS:
            growth *= 1 if is_normal else _NORMAL_FORM
            is_normal = True
        else:
            factor, written = _factor(key, part)
            growth *= factor
            is_normal = is_normal and written.replace(_BLANK, "").isascii()
        if growth > MOST_GROWTH:
            raise _too_long(key, growth)
    return growth


def _too_long(key: str, growth: int) -> TokenizerTooLarge:
    return TokenizerTooLarge(
        f"{key} makes up to {growth:,} characters of one, at most {MOST_GROWTH} are accepted"
    )


def _factor(key: str, part: Part) -> tuple[int, str]:
    """Returns how many characters a part makes of one, at most, and the text that it writes."""
    kind = part["type"]
    if kind == "Replace":
        content = _short(key, part, "content")
        return _replaced(key, part.get("pattern"), len(content)), content
    if kind == "Prepend":
        text = _short(key, part, "prepend")
        return 1 + len(text), text
    if kind == "ByteLevel" and key != "decoder":
        return _BYTES + (part.get("add_prefix_space", True) is not False), _BYTE_SIGN
    if kind == "BertNormalizer":
        return _BERT, ""
    if kind == "Precompiled":
        return _longest_replacement(key, part), _BYTE_SIGN
    if kind == "Metaspace":
        return 2, _short(key, part, "replacement")
    for name in ("suffix", "prefix", "delimiter", "pad_token", "word_delimiter_token"):
        if name in part:
            _short(key, part, name)
    if "pattern" in part:
        _replaced(key, part["pattern"], 1)
    return (2 if kind == "WordPiece" else 1), ""


def _short(key: str, part: Part, name: str) -> str:
    text = part.get(name)
    if not isinstance(text, str) or len(text) > MOST_TEXT:
        what = f"{key}: {name} of {part.get('type')} must be a text of at most {MOST_TEXT:,}"
        raise TokenizerTooLarge(f"{what} characters")
    return text


def _replaced(key: str, pattern: Any, written: int) -> int:
    """Returns how many characters are made of one where a text of `written` replaces a pattern."""
    if not isinstance(pattern, dict) or len(pattern) != 1:
        raise TokenizerTooLarge(f"{key}: a pattern must be a String or a Regex")
    if "String" in pattern:
        text = _short(key, pattern, "String")
        return max(1, -(-written // len(text))) if text else 1 + 2 * written
    regex = _short(key, pattern, "Regex")
    for number in re.findall(r"\{[\s,]*(\d+)[\s,]*(\d*)", regex):
        if any(int(one[:9] or 0) > MOST_REPEAT for one in number):
            raise TokenizerTooLarge(f"{key}: a Regex repeats more than {MOST_REPEAT:,} times")
    # It may match before the first of two characters, between them, and after the last.
    return 1 + 2 * written if _may_match_nothing(regex) else max(1, written)


def _may_match_nothing(regex: str) -> bool:
    """Whether the expression may match an empty text, which is then inserted between any two
    characters. True for what Python's own syntax lacks."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re._parser.parse(regex).getwidth()[0] == 0  # type: ignore[attr-defined]
    except (re.error, RecursionError, OverflowError):
        return True


def _longest_replacement(key: str, part: Part) -> int:
    """Returns the characters of the longest text in a map of characters: it holds the length of a
    trie, the trie, and all replacements, each ended by a NUL."""
    try:
        data = base64.b64decode(part.get("precompiled_charsmap") or "", validate=True)
        size = struct.unpack_from("<I", data)[0] if data else 0
    except (TypeError, ValueError, struct.error):
        raise TokenizerTooLarge(f"{key}: precompiled_charsmap is no map of characters") from None
    texts = data[4 + size :].split(b"\0")
    return max(1, *(len(text.decode("utf-8", "replace")) for text in texts))


def _refuse_templates(parts: list[Part]) -> None:
    added = 0
    for part in filter(_is_template, parts):
        ids = {name: len(one["ids"]) for name, one in part["special_tokens"].items()}
        for name in ("single", "pair"):
            texts = [one["Sequence"]["id"] for one in part[name] if "Sequence" in one]
            if len(texts) != len(set(texts)):
                raise TokenizerTooLarge(f"post_processor.{name} writes a text more than once")
            names = [one["SpecialToken"]["id"] for one in part[name] if "SpecialToken" in one]
            added += sum(ids.get(one, 1) for one in names)
    if added > MOST_IDS:
        raise TokenizerTooLarge(f"post_processor adds {added:,} ids, {MOST_IDS} are accepted")


def _is_template(part: Part) -> bool:
    """Whether it is a TemplateProcessing. Raises `TokenizerTooLarge` for one of another form."""
    if part["type"] != "TemplateProcessing":
        return False
    tokens = part.get("special_tokens")
    pieces = [part.get("single"), part.get("pair")]
    is_sound = (
        isinstance(tokens, dict)
        and all(isinstance(o, dict) and isinstance(o.get("ids"), list) for o in tokens.values())
        and all(isinstance(one, list) and all(map(_is_piece, one)) for one in pieces)
    )
    if not is_sound:
        raise TokenizerTooLarge("post_processor: a TemplateProcessing is not of the known form")
    return True


def _is_piece(piece: Any) -> bool:
    return (
        isinstance(piece, dict)
        and piece.keys() <= {"Sequence", "SpecialToken"}
        and all(isinstance(o, dict) and isinstance(o.get("id"), str) for o in piece.values())
    )


def _refuse_model(model: Any) -> None:
    if not isinstance(model, dict):
        raise TokenizerTooLarge("model is no object")
    for name in ("continuing_subword_prefix", "end_of_word_suffix", "unk_token"):
        if model.get(name) is not None:
            _short("model", model, name)
    word = model.get("max_input_chars_per_word", 0)
    if type(word) is not int or not 0 <= word <= MOST_WORD:
        raise TokenizerTooLarge(f"model.max_input_chars_per_word must be at most {MOST_WORD:,}")
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, dict):
        _refuse_token("model.vocab", max(vocabulary, key=len, default=""))
    for row in vocabulary if isinstance(vocabulary, list) else []:
        _refuse_token("model.vocab", row[0] if isinstance(row, list) and row else None)


def _refuse_added(added: Any) -> None:
    for row in added if isinstance(added, list) else []:
        _refuse_token("added_tokens", row.get("content") if isinstance(row, dict) else None)


def _refuse_token(where: str, token: Any) -> None:
    """An answer is the texts of its tokens."""
    if not isinstance(token, str) or len(token) > MOST_TEXT:
        size = f"of {len(token):,} characters" if isinstance(token, str) else "that is no text"
        raise TokenizerTooLarge(f"{where} has a token {size}, at most {MOST_TEXT:,} are accepted")


def _refuse_padding(padding: Any, truncation: Any) -> None:
    """The engine neither pads nor cuts by the file, but what reads it may."""
    if isinstance(padding, dict):
        strategy = padding.get("strategy")
        fixed = strategy.get("Fixed") if isinstance(strategy, dict) else 0
        for name, value in (("strategy", fixed), ("multiple", padding.get("pad_to_multiple_of"))):
            if value is not None and not (type(value) is int and 0 <= value <= MOST_PADDING):
                raise TokenizerTooLarge(f"padding.{name} must be at most {MOST_PADDING:,}")
    if isinstance(truncation, dict):
        length, stride = truncation.get("max_length"), truncation.get("stride", 0)
        if type(length) is not int or type(stride) is not int or not 0 <= 2 * stride <= length:
            raise TokenizerTooLarge("truncation.stride must be at most half of max_length")
