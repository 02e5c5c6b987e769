"""Why the registry does not do something."""

from __future__ import annotations


class RegistryRefused(Exception):
    """What is asked for is against a rule of the registry; the message names what stands in the
    way and what to do."""
