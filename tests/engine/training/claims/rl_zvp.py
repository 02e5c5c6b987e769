"""Some tokens learn by their entropy, not all."""


def check(log, config, run_dir):
    updates = log.payloads("agent.update")
    assert any(0 < update["figures"]["by_entropy"] < 1 for update in updates)
