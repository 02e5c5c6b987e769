"""List of runs: query, keyset pages, table."""
