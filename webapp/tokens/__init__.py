"""API tokens: pages, REST, and what reads a request that uses one. The model is in accounts."""
