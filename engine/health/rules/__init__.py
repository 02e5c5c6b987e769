"""Rules of a run's health, one module each."""
