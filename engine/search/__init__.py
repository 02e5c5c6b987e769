"""Search: posteriors, the shared tree and its budget."""
