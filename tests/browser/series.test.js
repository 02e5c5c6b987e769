import { emptyState } from "/static/js/fold.js";
import { bestCheckpoint, chartsOf, result, stack, validationChange } from "/static/js/series.js";
import { readDraws } from "/static/js/thompson.js";
import { equal, test } from "./check.js";

function state() {
  const made = emptyState();
  made.steps = [
    { step: 1, reward: 0.2, solved: 0.5, reward_by_agent: { oak: 0.2 }, node_share: { oak: 1 },
      phases: { learn: 1, generate: 2 } },
    { step: 2, reward: 0.4, solved: 0.6, reward_by_agent: { oak: 0.3, birch: 0.5 },
      node_share: { oak: 0.5, birch: 0.5 }, phases: { learn: 1, generate: 3, odd: 1 } },
  ];
  made.updates = [
    { step: 1, agent: "oak", entropy: 0.6, kl: 0 },
    { step: 2, agent: "birch", entropy: 0.5, kl: 0.1 },
  ];
  made.evaluations = [
    { step: 0, split: "validation", agents: { oak: 0.2, birch: 0.3 }, tree: 0.4, tree_nodes: 8 },
    { step: 0, split: "test", agents: { oak: 0.1 } },
    { step: 2, split: "validation", agents: { oak: 0.5, birch: 0.3 }, tree: null, tree_nodes: 0 },
  ];
  return made;
}
const chart = (id) => chartsOf(state(), ["oak", "birch"]).find((one) => one.id === id);
const values = (id) => Object.fromEntries(chart(id).lines.map((line) => [line.label, line.values]));

test("lines have a value or a null for every step", () => {
  equal(values("reward"), { oak: [0.2, 0.3], birch: [null, 0.5], mean: [0.2, 0.4] });
  equal(values("entropy"), { oak: [0.6, null], birch: [null, 0.5] });
  equal(chart("entropy").x, [1, 2]);
});

test("agents that learn as one have one line, which names them all", () => {
  const made = state();
  made.updates[0].shared_with = ["elm", "yew"];
  const lines = chartsOf(made, ["oak", "elm", "birch", "yew"]).find((one) => one.id === "kl").lines;
  equal(lines.map((line) => line.label), ["oak + elm + yew", "birch"]);
  equal(lines[0].values, [0, null]);
});

test("validation has the agents and the team's tree", () => {
  equal(values("validation"), { oak: [0.2, 0.5], birch: [0.3, 0.3], "tree@8": [0.4, null] });
  equal(validationChange(state(), ["oak"]), [{ agent: "oak", before: 0.2, now: 0.5 }]);
});

test("phases come in the order of a step, unknown ones last", () => {
  equal(Object.keys(values("phases")), ["generate", "learn", "odd"]);
  equal(stack(chart("phases").lines), [[2, 3], [3, 4], [3, 5]]);
});

test("a result needs the test split at two steps", () => {
  const made = state();
  equal(result(made), null);
  made.evaluations.push({ step: 2, split: "test", agents: { oak: 0.9 } });
  equal([result(made).before.agents.oak, result(made).after.agents.oak], [0.1, 0.9]);
});

test("an empty run has empty charts", () => {
  for (const one of chartsOf(emptyState(), [])) equal(one.x, []);
});

test("Thompson draws are told level by level, with their winners", () => {
  const levels = readDraws({
    levels: [
      { node: 0, agents: { oak: 0.3, birch: 0.8 }, agent: "birch", gen: 0.2, cont: 0.6,
        children: { 2: 0.9, 1: 0.1 }, choice: 2 },
      { node: 2, choice: "gen" },
    ],
  });
  equal(levels[0].groups.map((group) => group.arms.find((arm) => arm.won).name), [
    "birch", "go deeper", "node 2",
  ]);
  equal(levels[1], { at: "At node 2", groups: [] });
  equal(readDraws(undefined), []);
});

test("the best checkpoint is the newest that was told to be the best", () => {
  const made = state();
  equal(bestCheckpoint(made), null);
  made.checkpoints = [
    { step: 5, best: true, validation: 0.3 },
    { step: 10, best: true, validation: 0.4 },
    { step: 15, best: false, validation: 0.2 },
  ];
  equal(bestCheckpoint(made).step, 10);
});
