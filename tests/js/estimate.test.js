import { phaseOf, progressOf, totals } from "/static/js/run/estimate.js";
import { emptyState } from "/static/js/stream/fold.js";
import { equal, test } from "./check.js";

function state(steps, plan) {
  const made = emptyState();
  made.plan = { agents: [], minutes: null, ...plan };
  for (let step = 1; step <= steps; step += 1) {
    made.steps.push({ step, seconds: 8, time: step * 10_000, training_seconds: step * 8, nodes: 4, tokens: 5 });
  }
  made.step = steps;
  return made;
}

test("time left counts from step to step, so that validation counts too", () => {
  const { done, share, secondsLeft } = progressOf(state(5, { steps: 20 }));
  equal([done, share, secondsLeft], [5, 0.25, 150]);
});

test("the nearer of the two limits decides", () => {
  const { share, secondsLeft, minutesDone } = progressOf(state(5, { steps: 1000, minutes: 2 }));
  equal([share, minutesDone, secondsLeft], [1 / 3, 2 / 3, 100]);
});

test("before the first step there is no estimate", () => {
  const { share, secondsLeft } = progressOf(state(0, { steps: 20 }));
  equal([share, secondsLeft], [0, null]);
});

test("the phase follows the trees of the newest step", () => {
  const made = state(1, { steps: 3 });
  equal(phaseOf(state(0, { steps: 3 })), "first validation");
  equal(phaseOf(made), "between steps");
  made.step = 2;
  equal(phaseOf(made), "opening trees");
  made.trees.set(1, { step: 2, closed: false });
  equal(phaseOf(made), "growing trees");
  made.trees.get(1).closed = true;
  equal(phaseOf(made), "updating agents");
});

test("a run that its minutes ended is in its final test, however many steps it planned", () => {
  const made = state(45, { steps: 1000, minutes: 6 });
  const { share, byMinutes, minutesDone, minutes } = progressOf(made);
  equal([share, byMinutes, minutesDone, minutes], [1, true, 6, 6]);
  equal(phaseOf(made), "final test");
  equal(phaseOf(state(20, { steps: 20, minutes: 60 })), "final test");
  equal(progressOf(state(20, { steps: 20, minutes: 60 })).byMinutes, false);
});

test("totals are over the steps that count", () => {
  equal(totals(state(3, { steps: 3 })), { nodes: 12, tokens: 15 });
});

test("what an external engine did not measure is not known, and no zero", () => {
  const one = (step, fields) => ({ step, time: step * 1000, seconds: null, training_seconds: null, nodes: 4, tokens: null, ...fields });
  const now = { plan: { steps: 10, minutes: 10 }, trees: new Map(), steps: [one(1, { training_seconds: 60 }), one(2)] };
  equal(totals(now), { nodes: 8, tokens: null });
  equal(progressOf(now).minutesDone, 1);
  equal(progressOf(now).secondsLeft, 8);
  equal(progressOf({ ...now, steps: [one(1)] }).secondsLeft, null);
});
