"""Search: posteriors, the shared tree, and when it may grow."""
