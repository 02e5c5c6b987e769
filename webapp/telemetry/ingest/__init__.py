"""Ingest of events, each exactly once."""
