"""Module preload: the modules that a page's script imports.

A browser requests all of them at once instead of level by level. Invariant: every path is that of a
file below static/, each once, after the module that imports it first.
"""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache

from django.conf import settings

_FROM = re.compile(r"""^(?:import|export)\b[^;]*?["'](\.{1,2}/[^"']+)["']""", re.MULTILINE)


@lru_cache(maxsize=32)
def imported(entry: str) -> tuple[str, ...]:
    """Paths of all direct and indirect imports of `entry` ("js/pages/run-page.js"), without it."""
    modules = {entry: None}
    queue = [entry]
    while queue:
        path = queue.pop(0)
        text = (settings.STATIC_DIR / path).read_text()
        for name in _FROM.findall(text):
            module = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
            if module not in modules:
                modules[module] = None
                queue.append(module)
    return tuple(modules)[1:]
