"""Errors of the calls that a program makes."""

from __future__ import annotations


class Error(Exception):
    """Base of what these calls raise, as `wandb.Error` is of W&B's."""
