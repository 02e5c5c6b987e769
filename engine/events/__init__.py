"""Telemetry: the vocabulary of events, the append-only log and the surviving timeline."""
