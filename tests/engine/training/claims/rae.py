"""Scores less the running mean of their agent's, which is in the checkpoint."""

import json


def advantages(log, config):
    decay = config.credit.options("advantage").decay
    baselines = {}
    for tree in log.trees:
        scores, _, agents, actual = log.columns(tree)
        expected = []
        for agent, score in zip(agents, scores, strict=True):
            before = baselines.get(agent, 0.0)
            baselines[agent] = decay * before + (1 - decay) * score
            expected.append(score - before)
        yield expected, actual


def check(log, config, run_dir):
    (state,) = (run_dir / "checkpoints").glob("step-000002/state.json")
    assert json.loads(state.read_text())["memory"]["credit.advantage"]["method"] == "rae"
