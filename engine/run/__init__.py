"""Shared parts of training, search and evaluation: exit status, failure, lease, samples, waits."""
