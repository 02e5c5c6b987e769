"""Grove's trainer: several language models learn by reinforcement in one shared search tree.

Plain Python, torch and Ray. It knows no Django, no database and no HTTP.
"""
