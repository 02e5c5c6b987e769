"""Tests of the text of single tokens, with the starters' real tokenizers."""

import pytest
from transformers import AutoTokenizer

from engine.policy.starters import starter_directory
from engine.policy.token_texts import TokenTexts

PROGRAM = "def solve(x):\n    x = sum(map(int, str(abs(x))))\n    return x"


@pytest.mark.parametrize("starter", ["oak", "fern"])
def test_the_texts_of_tokens_join_to_the_whole(starter):
    tokenizer = AutoTokenizer.from_pretrained(starter_directory(starter))
    texts = TokenTexts(tokenizer)
    ids = [*tokenizer(PROGRAM, add_special_tokens=False).input_ids, tokenizer.eos_token_id]
    each = texts.each(ids)
    assert len(each) == len(ids) and "".join(each) == texts.whole(ids)
    assert each[-1] == tokenizer.eos_token, "special tokens are shown as they are"
    assert texts.each([]) == ()
