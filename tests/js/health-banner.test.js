import { healthOf } from "/static/js/run/health-banner.js";
import { emptyState, fold } from "/static/js/stream/fold.js";
import { equal, test } from "./check.js";

const change = (seq, state, rule, step, agent = "oak") => [seq, 1000 * seq, "health", { state, rule, step, agent, title: rule, seen: "", since: step, since_time: 1 }];

test("open warnings come first by their newest, closed ones apart", () => {
  const state = fold(
    [change(1, "opened", "mismatch", 3), change(2, "opened", "slow_step", 4, ""), change(3, "opened", "mismatch", 5, "fern"), change(4, "closed", "mismatch", 14)],
    emptyState(),
  );
  const { open, closed } = healthOf(state);
  equal(open.map((one) => [one.rule, one.agent]), [["mismatch", "fern"], ["slow_step", ""]]);
  equal(closed.map((one) => [one.rule, one.agent, one.closed.step]), [["mismatch", "oak", 14]]);
});

test("a run without warnings has none", () => equal(healthOf(emptyState()), { open: [], closed: [] }));
