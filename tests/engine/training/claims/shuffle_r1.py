"""The pairs of most contrast are learned from, at most half of the rows."""

REASONS = {"unpaired", "low_contrast", "not_drawn"}


def check(log, config, run_dir):
    ends = log.payloads("step.end")
    assert all(end["left"]["low_contrast"] > 0 and "rows" not in end for end in ends)
    learned_from = sum(update["nodes"] for update in log.payloads("agent.update"))
    assert 0 < learned_from <= sum(map(len, log.trees)) / 2
