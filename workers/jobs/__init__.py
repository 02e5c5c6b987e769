"""Jobs of a worker beside its runs: exports, reports, model files."""
