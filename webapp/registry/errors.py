"""Why the registry does not do something."""

from __future__ import annotations

from webapp.errors import Refused


class RegistryRefused(Refused):
    """What is asked for is against a rule of the registry; the message names what stands in the
    way and what to do."""
