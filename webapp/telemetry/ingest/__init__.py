"""Ingestion of events, each exactly once."""
