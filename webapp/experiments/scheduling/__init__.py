"""Queue of runs: order, dispatch, leases, state machine."""
