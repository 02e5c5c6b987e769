"""Keys, tokens and passwords as they are given: with blanks of a mounted file, or in an address."""

from __future__ import annotations

import re

_AROUND = "\ufeff\u200b\u200c\u200d\u2060"
"""What editors and copies leave around a key, and `str.strip` does not remove."""
_USER = re.compile(r"(?<=://)[^/?#\s]+(?=@)")


def bare(secret: str) -> str:
    """Returns a secret without blanks, line ends, byte order marks and characters of no width
    around it."""
    before = None
    while before != secret:
        before, secret = secret, secret.strip().strip(_AROUND)
    return secret


def refuse_user(model: str) -> None:
    """Raises `ValueError` if a model is an address that holds a user or a password."""
    if model.startswith(("http://", "https://")) and _USER.search(model):
        raise ValueError(
            "the address of the model holds a user or a password, which the run's record would "
            "show; leave it out, and set OPENAI_API_KEY to the key"
        )
