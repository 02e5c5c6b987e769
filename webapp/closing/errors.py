class CloseRefused(Exception):
    """Why the workspace cannot be deleted now, and what to do about it."""
