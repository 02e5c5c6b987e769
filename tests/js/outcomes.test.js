import { emptyState } from "/static/js/stream/fold.js";
import { bestCheckpoint, familyFigures, result, validationChange } from "/static/js/run/outcomes.js";
import { equal, test } from "./check.js";

function state() {
  const made = emptyState();
  made.evaluations = [
    { step: 0, split: "validation", agents: { oak: 0.2, birch: 0.3 }, tree: 0.4, tree_nodes: 8 },
    { step: 0, split: "test", agents: { oak: 0.1 } },
    { step: 2, split: "validation", agents: { oak: 0.5, birch: 0.3 }, tree: null, tree_nodes: 0 },
  ];
  return made;
}

test("validationChange returns the first and the newest result", () => {
  equal(validationChange(state(), ["oak"]), [{ agent: "oak", before: 0.2, now: 0.5 }]);
});

test("a result needs the test split at two steps", () => {
  const made = state();
  equal(result(made), null);
  made.evaluations.push({ step: 2, split: "test", agents: { oak: 0.9 } });
  equal([result(made).before.agents.oak, result(made).after.agents.oak], [0.1, 0.9]);
});

test("the best checkpoint is the newest that was marked as best", () => {
  const made = state();
  equal(bestCheckpoint(made), null);
  made.checkpoints = [
    { step: 5, best: true, validation: 0.3 },
    { step: 10, best: true, validation: 0.4 },
    { step: 15, best: false, validation: 0.2 },
  ];
  equal(bestCheckpoint(made).step, 10);
});

test("a test result has figures by family of problem", () => {
  const part = (oak, tree) => ({ problems: 5, agents: { oak }, tree, samples: null });
  const before = { families: { stated: part(0.2, 0.5), underspecified: part(0.1, 0.3) } };
  const after = { families: { stated: part(0.8, 0.9), underspecified: part(0.3, 0.7) } };
  const [stated, open] = familyFigures({ before, after }, ["oak"]);
  equal([stated.family, stated.problems, open.family], ["stated", 5, "underspecified"]);
  equal(stated.figures, [{ name: "oak", before: 0.2, after: 0.8 }, { name: "tree", before: 0.5, after: 0.9 }]);
  equal(familyFigures({ before: {}, after: {} }, ["oak"]), []);
});
