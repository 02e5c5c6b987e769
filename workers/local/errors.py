"""The one exception that ends a start: a sentence for the operator, and a remedy."""

from __future__ import annotations


class StartError(RuntimeError):
    """Something that Grove needs did not start. `str()` is both sentences."""

    def __init__(self, sentence: str, remedy: str):
        self.sentence = sentence
        self.remedy = remedy
        super().__init__(f"{sentence} {remedy}")
