import { stepsOf } from "/static/js/run/filters.js";
import { fold } from "/static/js/stream/fold.js";
import { Steps } from "/static/js/run/steps.js";
import { equal, ok, test } from "./check.js";

const NODES = 3;

/** A log of `steps` steps, each of two trees of three nodes; 18 events per step. */
function log(steps) {
  const events = [];
  const tell = (kind, payload) => events.push([events.length + 1, events.length, kind, payload]);
  for (let step = 1; step <= steps; step += 1) {
    tell("step.start", { step, trees: 2 });
    for (let tree = 0; tree < 2; tree += 1) {
      const id = events.length + 1;
      tell("tree.open", { tree: id, step, problem: "p", statement: "s" });
      for (let node = 1; node <= NODES; node += 1) {
        tell("node.open", { tree: id, node, agent: "oak", parent: 0, depth: 1, draws: {} });
        tell("node.close", { tree: id, node, score: 0, fraction: 0 });
      }
      tell("tree.close", { tree: id, nodes: NODES, solved: false, mean_score: 0, filtered: false });
    }
    tell("step.end", { step, nodes: 2 * NODES });
  }
  return events;
}

function stepsOfLog(events) {
  const requests = [];
  let resolveChange;
  const steps = new Steps({
    load: async (step, seq) => {
      requests.push([step, seq]);
      const trees = new Set(events.filter((e) => e[2] === "tree.open" && e[3].step === step).map((e) => e[3].tree));
      return events.filter((e) => trees.has(e[3].tree) && e[0] <= seq);
    },
    onChange: () => resolveChange?.(),
    onError: (error) => {
      throw error;
    },
  });
  /** Repeats the request until none is pending. */
  const settled = async (state) => {
    let trees = steps.trees(state);
    while (steps.loading) {
      await new Promise((resolve) => (resolveChange = resolve));
      trees = steps.trees(state);
    }
    return trees;
  };
  return { steps, requests, settled };
}

const stepNumbers = (trees) => trees.map((tree) => tree.step);

test("a filter names one step or several, and nothing else", () => {
  equal(stepsOf({ step: "12" }), { from: 12, to: 12 });
  equal(stepsOf({ step: " 3 - 9 " }), { from: 3, to: 9 });
  for (const step of ["", "0", "9-3", "x", "3-", "-3", "1.5"]) equal(stepsOf({ step }), null, step);
});

test("the newest step is that of the fold and makes no request", async () => {
  const events = log(6);
  const { settled, requests } = stepsOfLog(events);
  equal(stepNumbers(await settled(fold(events))), [6, 6]);
  equal(requests, []);
});

test("every step of a run can be reached, each loaded once", async () => {
  const events = log(6);
  const { steps, settled, requests } = stepsOfLog(events);
  const state = fold(events);
  steps.choose({ from: 2, to: 5 });
  const trees = await settled(state);
  equal(stepNumbers(trees), [2, 2, 3, 3, 4, 4, 5, 5]);
  ok(trees.every((tree) => tree.nodes.size === NODES && tree.closed));
  equal(requests.map(([step]) => step), [4, 3, 2]);
  await settled(state);
  equal(requests.length, 3);
  ok(steps.findTree(trees[0].id) === trees[0]);
});

test("at an earlier event a step shows only what was recorded by then", async () => {
  const events = log(6);
  const { steps, settled, requests } = stepsOfLog(events);
  steps.choose({ from: 2, to: 2 });
  equal((await settled(fold(events)))[1].nodes.size, NODES);
  // The fold keeps step 2 until step 4 starts: an earlier moment needs no request.
  const early = fold(events.slice(0, 24));
  equal((await settled(early)).map((tree) => tree.nodes.size), [2]);
  equal(requests.length, 1);
});

test("a resume discards loaded steps", async () => {
  const events = log(6);
  const { steps, settled, requests } = stepsOfLog(events);
  steps.choose({ from: 1, to: 1 });
  await settled(fold(events));
  const resumed = fold([...events, [events.length + 1, 0, "run.resumed", { step: 5 }]]);
  await settled(resumed);
  equal(requests.map(([step]) => step), [1, 1]);
});

test("a step that could not be loaded is retried on request", async () => {
  const failures = [{ status: 500 }];
  const changes = [];
  const steps = new Steps({
    load: async () => {
      if (failures.length) throw failures.pop();
      return log(6).filter(([, , , payload]) => payload.step === 1);
    },
    onChange: () => changes.push(steps.error?.status ?? null),
    onError: () => {},
  });
  const settle = async () => {
    steps.trees(fold(log(6)));
    while (steps.loading) await new Promise((resolve) => setTimeout(resolve));
    return steps.trees(fold(log(6))).length;
  };
  steps.choose({ from: 1, to: 1 });
  equal([await settle(), steps.loading, steps.error.status], [0, false, 500]);
  steps.retry();
  ok((await settle()) > 0);
  equal([steps.error, changes], [null, [500, null, null]]);
});

test("a range that is too long loses its oldest steps", async () => {
  const { steps, settled } = stepsOfLog(log(6));
  const state = fold(log(6));
  for (const tree of state.trees.values()) {
    for (let node = 10; node < 8000; node += 1) tree.nodes.set(node, { id: node });
  }
  steps.choose({ from: 1, to: 6 });
  const trees = await settled(state);
  ok(steps.full);
  ok(new Set(stepNumbers(trees)).size === 1 && trees[0].step === 6);
});
