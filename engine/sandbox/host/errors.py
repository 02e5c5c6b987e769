"""What can go wrong with the sandbox itself, as opposed to the programs in it."""


class SandboxUnavailable(RuntimeError):
    """The sandbox cannot be trusted to give right verdicts; names cause and remedy."""
