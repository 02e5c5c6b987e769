from webapp.errors import Refused


class CloseRefused(Refused):
    """Why the workspace cannot be deleted now, and what to do about it."""
