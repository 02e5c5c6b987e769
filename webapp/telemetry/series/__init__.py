"""Metrics of runs: storage and queries."""
