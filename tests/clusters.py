"""Nodes of Ray for tests."""

BARE = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
"""Options of a node without what nobody here reads; each would be a process that imports Ray."""
