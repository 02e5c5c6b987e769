"""File names that are accepted: plain base names, valid on every system and page."""

from __future__ import annotations

import re
import unicodedata

from engine.config.names import name_fault

LONGEST = 200
_NEVER = r"""/\\:*?"<>|\x00-\x1f\x7f"""
LIKE = rf"^[^-. ~{_NEVER}]([^{_NEVER}]*[^. {_NEVER}])?$"
"""Pattern of all accepted names; `name_error` rejects some that match."""
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_FORBIDDEN = frozenset('/\\:*?"<>|')


def name_error(name: str) -> str:
    """Why a file may not have this name, with the remedy; empty if it may."""
    if not 0 < len(name.encode("utf-8", "replace")) <= LONGEST:
        return f"give a name of 1 to {LONGEST} bytes"
    if forbidden := sorted(_FORBIDDEN & set(name)):
        return f"give the file's own name, without a folder and without {' '.join(forbidden)}"
    if {"/", "\\"} & set(unicodedata.normalize("NFKC", name)):
        return "give a name without characters that some systems take for a slash"
    if fault := name_fault(name):
        return fault
    # Characters without a meaning of their own: unassigned ones, and those of private use.
    if any(unicodedata.category(one).startswith("C") for one in name):
        return "give a name without control or invisible characters"
    if name.startswith((".", "-", " ", "~")) or name.endswith((".", " ")):
        return "give a name that begins with a letter or number and ends in no dot or space"
    if _RESERVED.fullmatch(name):
        return "some systems reserve this name; give another"
    return ""
