from webapp.errors import Refused


class CloseRefused(Refused):
    """Raised if the workspace cannot be deleted now; the message says why and what to do."""
