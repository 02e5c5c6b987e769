"""The learner of a policy: rows, layout of forward passes, ranks."""
