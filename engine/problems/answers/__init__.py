"""Parts of a model's answer: thoughts and marks, fenced blocks, code within prose, names of code.

Invariant: pure functions of text; nothing here runs code.
"""
