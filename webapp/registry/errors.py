"""Errors of the registry."""

from __future__ import annotations

from webapp.errors import Refused


class RegistryRefused(Refused):
    """Raised when a request violates a rule of the registry; the message names the obstacle and
    the remedy."""
