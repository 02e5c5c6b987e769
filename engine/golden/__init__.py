"""Worked numeric cases, run through the functions that training uses."""
