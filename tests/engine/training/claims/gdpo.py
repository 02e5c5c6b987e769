"""Each part of the reward standardised by itself, then their sum over the step."""

import numpy as np


def advantages(log, config):
    weights = {"tests": 1.0, "format": config.credit.format.weight}
    for trees in log.by_step():
        sums, actual = [], []
        for tree in trees:
            closed = [kinds["node.close"] for kinds in tree.values()]
            credits = [kinds["node.credit"] for kinds in tree.values()]
            parts = {
                "tests": np.array([one["score"] for one in closed]),
                "format": np.array([float(bool(one["program"])) for one in closed]),
            }
            for one, *values in zip(credits, *parts.values(), strict=True):
                own = {n: weights[n] * v for n, v in zip(parts, values, strict=True)}
                assert one["parts"] == own and one["shaped"] == sum(own.values())
            sums.append(sum(weights[name] * z_of(values) for name, values in parts.items()))
            actual += [one["advantage"] for one in credits]
        yield z_of(np.concatenate(sums)), actual


def z_of(values):
    return (values - values.mean()) / (values.std(ddof=1) + 1e-4)
