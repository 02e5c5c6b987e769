import { failureOf } from "/static/js/run/failure.js";
import { emptyState, fold } from "/static/js/stream/fold.js";
import { equal, test } from "./check.js";

const line = (seq) => [seq, 1000 * seq, "log.line", { level: "info", message: `line ${seq}` }];
const failed = (told) => fold([1, 2, 3].map(line).concat([[4, 4000, "error", told], line(5)]), emptyState());

test("what the engine says of the failure is told, with the log around it", () => {
  const found = failureOf(failed({ message: "no memory", traceback: "T", phase: "learn", agent: "oak", rank: 1 }), "");
  equal([found.message, found.phase, found.agent, found.rank, found.step], ["no memory", "learn", "oak", 1, null]);
  equal(found.lines.map((one) => one.message), ["line 1", "line 2", "line 3", "no memory", "line 5"]);
  equal(found.lines.map((one) => one.is), [false, false, false, true, false]);
});

test("where the engine was killed, the run's row and its last lines tell", () => {
  const state = fold([1, 2].map(line), emptyState());
  const found = failureOf(state, "the engine was killed by signal 9");
  equal([found.message, found.agent, found.rank], ["the engine was killed by signal 9", null, null]);
  equal(found.phase, "starting");
  equal(found.lines.length, 2);
});

test("the last good step is the last one that ended", () => {
  const state = failed({ message: "no memory" });
  state.steps.push({ step: 7 });
  equal(failureOf(state, "").step, 7);
});
