"""Gauges, one module each."""
