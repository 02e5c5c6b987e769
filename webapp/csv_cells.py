"""Cells of CSV files, which people open in spreadsheets.

Invariant: a text never starts a formula: where it would, an apostrophe precedes it, as OWASP
advises.
"""

from __future__ import annotations

_BEGINS_A_FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def safe_cell(text: str) -> str:
    """The text as a cell that no spreadsheet interprets as a formula."""
    return f"'{text}" if text.startswith(_BEGINS_A_FORMULA) else text
