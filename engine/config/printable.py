"""Text of other people in logs, on pages and on terminals."""

from __future__ import annotations


def printable(text: str) -> str:
    """Returns a text with escapes for what cannot be printed, or would steer a terminal or turn the
    direction of a line: control characters but the line feed, and format characters."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
