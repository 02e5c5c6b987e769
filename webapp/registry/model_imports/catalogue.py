"""The catalogue of pretrained models, where a site needs it.

Its fault is the operator's: users see no path of the server, and the log has all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from engine.config.pretrained import VARIABLE, CatalogueError
from webapp.errors import Refused

logger = logging.getLogger(__name__)


class CatalogueUnusable(Refused):
    """Raised while the operator's catalogue cannot be used."""

    status = 503
    sentence = "{}"

    def __init__(self) -> None:
        super().__init__(
            f"The catalogue of pretrained models cannot be used: {VARIABLE} of this server names "
            "a file with a fault. Its operator finds the fault in the log of the web process."
        )


@contextmanager
def usable_catalogue() -> Iterator[None]:
    """Context that raises `CatalogueUnusable` where the engine raises `CatalogueError`."""
    try:
        yield
    except CatalogueError as error:
        logger.error("%s", error)
        raise CatalogueUnusable from None
