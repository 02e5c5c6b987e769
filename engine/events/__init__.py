"""The telemetry vocabulary, the append-only log, and the surviving timeline."""
