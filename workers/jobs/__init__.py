"""Jobs of a worker alongside its runs: exports, reports, model files and imports."""
