"""Creation of experiments and runs: launch page, sweeps, preflight, forks."""
