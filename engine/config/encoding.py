"""Output on terminals whose encoding lacks characters, as with LC_ALL=C.

`webapp.client.encoding` is the same: neither imports the other.
"""

from __future__ import annotations

import codecs
import io
import sys

_ERRORS = "grove.escape"


def escape_what_cannot_be_encoded() -> None:
    """Lets stdout and stderr write what their encoding lacks as escapes that JSON has, too; a name
    in another script ends no command."""
    codecs.register_error(_ERRORS, _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)


def for_terminal(text: str) -> str:
    """Returns a model's text as it is; on a terminal, which it could steer, with escapes but for
    line ends and tabs."""
    if not sys.stdout.isatty():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in pairs), error.end
