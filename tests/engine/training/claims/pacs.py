"""The distance of the scores from what the policy makes of them is between 0 and 1."""


def check(log, config, run_dir):
    assert all(0 < one["figures"]["label_error"] < 1 for one in log.payloads("agent.update"))
