"""The list of runs: query, keyset pages, table."""
