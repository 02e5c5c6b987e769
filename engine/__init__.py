"""Grove's trainer: reinforcement learning of several language models in one shared search tree.

Plain Python, torch and Ray. It knows no Django, no database and no HTTP.
"""
