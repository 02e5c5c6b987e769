"""Measures a team: metrics, figures, diversity."""
