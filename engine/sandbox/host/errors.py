"""Errors of the sandbox itself, as opposed to those of the programs in it."""


class SandboxUnavailable(RuntimeError):
    """The sandbox cannot be trusted to give right verdicts; the message names cause and remedy."""
