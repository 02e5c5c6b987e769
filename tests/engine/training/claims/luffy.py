"""A demonstration of each tree whose reference is not too long, and the figures of its tokens."""

REASONS = {"reference_too_long"}


def check(log, config, run_dir):
    updates = log.payloads("agent.update")
    for end in log.payloads("step.end"):
        mine = [update for update in updates if update["step"] == end["step"]]
        trees = sum(len(update["trees"]) for update in mine)
        shown = trees - sum(end.get("left", {}).values())
        nodes = sum(update["nodes"] for update in mine)
        assert end["rows"] == {"rollout": nodes, "demonstration": shown} and shown > 0
    for figures in (update["figures"] for update in updates):
        assert 0 <= figures["unlikely_probability"] <= figures["unlikely_weight"]
        assert figures["unlikely_probability"] < figures["shown_probability"] < 1
    assert any(update["figures"]["unlikely_probability"] > 0 for update in updates)
