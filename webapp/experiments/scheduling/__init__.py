"""The queue of runs: order, dispatch, leases, state machine."""
