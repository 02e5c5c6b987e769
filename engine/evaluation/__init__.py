"""Evaluation of a team: measurement, metrics, figures, diversity."""
