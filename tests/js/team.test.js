import { firstPassed, teamFigures } from "/static/js/run/team.js";
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
  const { trees, solved, agents, repairs, pathNodes } = teamFigures([repaired, unsolved], ["oak", "fern"]);
  equal([trees, solved, pathNodes], [2, 1, 2]);
  equal(agents, [
    { name: "oak", nodes: 5, passed: 1, first: 0, path: 1 },
    { name: "fern", nodes: 3, passed: 1, first: 1, path: 1 },
  ]);
  equal(repairs.fern, { oak: { tried: 1, done: 1 }, fern: { tried: 1, done: 0 } });
  equal(repairs.oak, { oak: { tried: 1, done: 0 }, fern: { tried: 0, done: 0 } });
});

test("the first passing node is the one that was closed first", () => {
  equal(firstPassed(tree([[1, 0, "oak", 1, 9], [2, 0, "fern", 1, 8]])).id, 2);
  equal(firstPassed(tree([[1, 0, "oak", 0, 9]])), null);
});
