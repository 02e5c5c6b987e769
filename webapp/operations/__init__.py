"""The installation as its operator sees it: schema, readiness, figures, metrics."""
