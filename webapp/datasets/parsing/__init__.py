"""Parsing of uploaded files in a process with limits, and statistics of their problems."""
