"""Backups of an installation: one archive of database, artifacts and runs, and its restoration."""
