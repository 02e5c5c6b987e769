"""Models of a policy: loading, adapters, weights, output layer."""
