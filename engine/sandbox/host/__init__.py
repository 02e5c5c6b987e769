"""Trusted side of the sandbox: slots, limits, comparison, verdicts."""
