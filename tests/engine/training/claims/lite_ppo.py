"""Scores less the mean of their tree, by the deviation of the step."""

import numpy as np


def advantages(log, config):
    for trees in log.by_step():
        columns = [log.columns(tree) for tree in trees]
        spread = np.concatenate([scores for scores, *_ in columns]).std(ddof=1) + 1e-6
        expected = [(scores - scores.mean()) / spread for scores, *_ in columns]
        yield np.concatenate(expected), np.concatenate([column[3] for column in columns])
