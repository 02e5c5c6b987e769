"""Comparison of runs by their settings, curves and evaluations: page and REST."""
