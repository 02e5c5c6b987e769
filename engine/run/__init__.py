"""Shared parts of training, search and evaluation: checkpoints, exit status, lease, waits."""
