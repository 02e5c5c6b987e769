"""Nodes of Ray for tests."""

from engine.preload.environment import SETUP_WORKER

BARE = {
    "include_dashboard": False,
    "include_log_monitor": False,
    "no_monitor": True,
    "setup_worker_path": str(SETUP_WORKER),
}
"""Options of a node without what nobody here reads, each of which would be a process that imports
Ray; it sets its workers up as one does that an engine starts for itself."""
