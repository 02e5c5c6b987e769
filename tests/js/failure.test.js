import { failureOf } from "/static/js/run/failure.js";
import { emptyState, fold } from "/static/js/stream/fold.js";
import { equal, test } from "./check.js";

const line = (seq) => [seq, 1000 * seq, "log.line", { level: "info", message: `line ${seq}` }];
const failed = (payload) => fold([1, 2, 3].map(line).concat([[4, 4000, "error", payload], line(5)]), emptyState());

test("the panel shows the engine's error and the log around it", () => {
  const failure = failureOf(failed({ message: "no memory", traceback: "T", phase: "learn", agent: "oak", rank: 1 }), "");
  equal([failure.message, failure.phase, failure.agent, failure.rank, failure.step], ["no memory", "learn", "oak", 1, null]);
  equal(failure.lines.map((one) => one.message), ["line 1", "line 2", "line 3", "no memory", "line 5"]);
  equal(failure.lines.map((one) => one.is), [false, false, false, true, false]);
});

test("after a kill, the panel shows the row's error and the last log lines", () => {
  const state = fold([1, 2].map(line), emptyState());
  const failure = failureOf(state, "the engine was killed by signal 9");
  equal([failure.message, failure.agent, failure.rank], ["the engine was killed by signal 9", null, null]);
  equal(failure.phase, "starting");
  equal(failure.lines.length, 2);
});

test("the last good step is the last one that ended", () => {
  const state = failed({ message: "no memory" });
  state.steps.push({ step: 7 });
  equal(failureOf(state, "").step, 7);
});
