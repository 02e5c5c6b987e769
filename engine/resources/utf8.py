"""Text of this process and its children: UTF-8, whatever the locale of the shell is."""

from __future__ import annotations

import locale
import os
import sys

VARIABLE = "PYTHONUTF8"


def ensure_utf8() -> None:
    """Starts this program again, as the same process, in Python's UTF-8 mode if its locale has
    another encoding, as with LC_ALL=C and PYTHONUTF8=0: names of files, and what is written into
    them, would be other text than elsewhere, or none. Its children inherit the mode."""
    if _is_utf8() or os.environ.get(VARIABLE) == "1" or sys.flags.ignore_environment:
        return
    os.environ[VARIABLE] = "1"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # nosec B606


def _is_utf8() -> bool:
    encodings = locale.getpreferredencoding(False), sys.getfilesystemencoding()
    return all(one.lower().replace("-", "") == "utf8" for one in encodings)
