import { readDraws } from "/static/js/node/thompson.js";
import { equal, test } from "./check.js";

test("Thompson draws are listed level by level, with their winners", () => {
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
