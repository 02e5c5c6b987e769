"""Memory: what a run keeps across its steps, besides weights and buffers."""
