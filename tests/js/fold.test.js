import { agentsOf, emptyState, fold, forestSteps, outcome, treesOf } from "/static/js/stream/fold.js";
import { equal, ok, test } from "./check.js";

let seq = 0;
const at = (kind, payload = {}, time = 1000 * (seq + 1)) => [++seq, time, kind, payload];

function log() {
  seq = 0;
  return [
    at("run.state", { state: "running" }),
    at("run.planned", { steps: 4, agents: ["oak", "birch"], minutes: null }),
    ...step(1),
    ...step(2),
    ...step(3),
  ];
}

function step(number) {
  const opened = at("step.start", { step: number, trees: 1 });
  const tree = seq + 1;
  return [
    opened,
    at("tree.open", { tree, step: number, problem: "p", statement: "s" }),
    at("node.open", { tree, node: 1, agent: "oak", parent: 0, depth: 1, draws: {} }),
    at("node.close", { tree, node: 1, score: 0, fraction: 0.5, program: "a", tests: [] }),
    at("node.open", { tree, node: 2, agent: "birch", parent: 1, depth: 2, draws: {} }),
    at("node.close", { tree, node: 2, score: 1, fraction: 1, program: "b", tests: [] }),
    at("node.credit", { tree, node: 2, shaped: 1.25, advantage: 0.7 }),
    at("tree.close", { tree, nodes: 2, solved: true, mean_score: 0.5, filtered: false }),
    at("agent.update", { agent: "oak", step: number, kl: 0.1, entropy: 0.5 }),
    at("eval.result", { step: number, split: "validation", agents: { oak: 0.5 }, tree: 0.7 }),
    at("step.end", { step: number, seconds: 2, nodes: 2, tokens: 9, training_seconds: 2 * number }),
  ];
}

test("folding twice, in parts or with overlaps gives the same state", () => {
  const events = log();
  const whole = fold(events);
  const parts = fold(events.slice(0, 9));
  fold(events.slice(4, 20), parts);
  fold(events, parts);
  equal(parts, whole);
  equal(fold(events, fold(events)), whole);
});

test("no event counts twice when events are sent again", () => {
  const events = log();
  for (let cut = 1; cut <= events.length; cut += 1) {
    const once = fold(events.slice(0, cut));
    equal(fold([events[cut - 1]], fold(events.slice(0, cut))), once, `event ${cut}:`);
  }
});

test("every prefix of the log is a state that later events complete", () => {
  const events = log();
  const whole = JSON.stringify([...fold(events).trees]);
  for (let cut = 0; cut <= events.length; cut += 1) {
    const state = fold(events.slice(0, cut));
    equal(state.seq, cut);
    equal(JSON.stringify([...fold(events.slice(cut), state).trees]), whole);
  }
});

test("only the trees of the two newest steps are kept, the curves of all", () => {
  const state = fold(log());
  equal(forestSteps(state), [3, 2]);
  equal(treesOf(state, 3).length, 1);
  equal(state.steps.map((one) => one.step), [1, 2, 3]);
  equal(state.updates.length, 3);
});

test("a node is open, then closed, then credited", () => {
  const events = log();
  const index = events.findIndex(([, , kind]) => kind === "node.open");
  const state = fold(events.slice(0, index + 1));
  const tree = treesOf(state, 1)[0];
  equal(outcome(tree.nodes.get(1)), "open");
  fold(events.slice(0, index + 2), state);
  equal(outcome(tree.nodes.get(1)), "partial");
  fold(events.slice(0, index + 7), state);
  equal(outcome(tree.nodes.get(2)), "passed");
  equal(tree.nodes.get(2).advantage, 0.7);
  ok(tree.solved && tree.closed);
});

test("a technical failure is not a wrong answer", () => {
  equal(outcome({ closed: true, score: null, fraction: 0 }), "failure");
  equal(outcome({ closed: true, score: 0, fraction: 0 }), "failed");
});

test("resuming from a checkpoint voids the steps after it", () => {
  const events = log();
  const state = fold(events);
  fold([at("run.resumed", { step: 1 })], state);
  equal(state.step, 1);
  equal(state.steps.map((one) => one.step), [1]);
  equal(state.updates.map((one) => one.step), [1]);
  equal(state.evaluations.map((one) => one.step), [1]);
  equal(forestSteps(state), []);
  fold(step(2), state);
  equal(state.steps.map((one) => one.step), [1, 2]);
  equal(state.resumes, 1);
});

test("an evaluation's tree score is not taken for a tree's id", () => {
  equal(fold(log()).evaluations[0].tree, 0.7);
});

test("a wait that is reported again is the same wait, further on", () => {
  seq = 0;
  const wait = (done) => ({ name: "final test", deadline_seconds: 0, done, total: 9 });
  const state = fold([at("run.waiting", wait(0), 5000), at("run.waiting", wait(4), 8000)]);
  equal(state.waiting, { name: "final test", deadline: 0, since: 5000, done: 4, total: 9 });
});

test("a wait ends when its name is empty, and the first error stays the cause", () => {
  seq = 0;
  const state = fold([at("run.waiting", { name: "sandbox", deadline_seconds: 60 }, 5000)]);
  equal(state.waiting, { name: "sandbox", deadline: 60, since: 5000, done: 0, total: 0 });
  fold([at("run.waiting", { name: "", deadline_seconds: 0 })], state);
  equal(state.waiting, null);
  fold([at("error", { message: "first" }), at("error", { message: "second" })], state);
  equal(state.error.message, "first");
  fold([at("run.state", { state: "running" })], state);
  equal(state.error, null);
});

test("events of unknown kinds and of dropped trees change only the seq", () => {
  seq = 0;
  const state = fold([at("later.kind", {}), at("node.close", { tree: 99, node: 1, score: 1 })]);
  equal(state.seq, 2);
  equal(state.trees.size, 0);
  equal(agentsOf(emptyState()), []);
});

test("a tree has no cycle, whatever a log says", () => {
  seq = 0;
  const open = (node, parent) => at("node.open", { tree: 1, node, parent, agent: "oak", depth: 1, draws: {} });
  const opened = at("tree.open", { tree: 1, step: 1, problem: "p", statement: "s" });
  const log = [opened, open(1, 1), open(2, 3), open(3, 2), open(4, 1), open(1, 4), open(0, 0), open(5, -7), open(6, 2 ** 60)];
  const [tree] = fold(log).trees.values();
  equal([...tree.nodes.values()].map(({ id, parent }) => [id, parent]), [[1, 0], [2, 0], [3, 2], [4, 1], [5, 0], [6, 0]]);
});
