import { allRepairs, firstPassed, repairRatio, teamFigures } from "/static/js/run/team.js";
import { equal, test } from "./check.js";

const tree = (rows) => ({
  step: 1,
  nodes: new Map(
    rows.map(([id, parent, agent, score, closedSeq]) => [id, { id, parent, agent, score, closedSeq, closed: true }]),
  ),
});

test("solvers, repairs and winning paths are counted by hand", () => {
  const repaired = tree([
    [1, 0, "oak", 0, 10],
    [2, 1, "fern", 1, 30],
    [3, 1, "oak", 0, 20],
    [4, 2, "oak", 0, 40], // below a node that passed: no repair
    [5, 0, "oak", 1, 50],
  ]);
  const unsolved = tree([[1, 0, "fern", 0, 5], [2, 1, "fern", 0, 6], [3, 1, "oak", null, 7]]);
  const figures = teamFigures([repaired, unsolved], ["oak", "fern"]);
  const { trees, solved, agents, repairs, fresh, pathNodes } = figures;
  equal([trees, solved, pathNodes], [2, 1, 2]);
  equal(agents, [
    { name: "oak", nodes: 5, passed: 1, first: 0, path: 1 },
    { name: "fern", nodes: 3, passed: 1, first: 1, path: 1 },
  ]);
  equal(repairs.fern, { oak: { tried: 1, done: 1 }, fern: { tried: 1, done: 0 } });
  equal(repairs.oak, { oak: { tried: 1, done: 0 }, fern: { tried: 0, done: 0 } });
  equal([allRepairs(figures), fresh], [{ tried: 3, done: 1 }, { tried: 3, done: 1 }]);
});

test("a repair is compared with a fresh answer, with an interval", () => {
  const { ratio, low, high } = repairRatio({ tried: 20, done: 9 }, { tried: 40, done: 12 });
  // 0.45 / 0.3; the deviation of the logarithm is sqrt(1/9 - 1/20 + 1/12 - 1/40) = 0.3456
  equal([ratio, low, high].map((value) => value.toFixed(3)), ["1.500", "0.762", "2.953"]);
  equal(repairRatio({ tried: 20, done: 0 }, { tried: 40, done: 12 }), null);
  equal(repairRatio({ tried: 0, done: 0 }, { tried: 0, done: 0 }), null);
});

test("the first passing node is the one that was closed first", () => {
  equal(firstPassed(tree([[1, 0, "oak", 1, 9], [2, 0, "fern", 1, 8]])).id, 2);
  equal(firstPassed(tree([[1, 0, "oak", 0, 9]])), null);
});
