"""Scores less their mean, by their deviation, over all tokens of a step."""

import numpy as np


def advantages(log, config):
    for trees in log.by_step():
        kinds = [kinds for tree in trees for kinds in tree.values()]
        scores = np.array([k["node.close"]["score"] for k in kinds])
        tokens = np.repeat(scores, [k["node.close"]["tokens"] for k in kinds])
        spread = np.sqrt(max(tokens.var(), 1e-8))
        yield (scores - tokens.mean()) / spread, [k["node.credit"]["advantage"] for k in kinds]
