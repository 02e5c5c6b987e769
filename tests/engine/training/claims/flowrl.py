"""The head moves away from 0, and the flow does not balance yet."""


def check(log, config, run_dir):
    updates = log.payloads("agent.update")
    assert all(update["figures"]["flow_gap"] > 0 for update in updates)
    assert all(update["figures"]["log_z"] != 0 for update in updates)
