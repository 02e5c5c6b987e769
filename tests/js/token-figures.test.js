import { bounds, columnOf, readOf } from "/static/js/node/token-figures.js";
import { equal, test } from "./check.js";

test("the shade of a token follows the chosen figure", () => {
  equal([0, -0.2, -1, -2, -9].map(columnOf("logprobs").shade), [0, 1, 2, 3, 4]);
  equal([0, 0.1, 0.5, 1, 3].map(columnOf("entropy").shade), [0, 1, 2, 3, 4]);
  equal([1, 1.05, 0.85, 1.4, 3, 0.3].map(columnOf("ratio").shade), [0, 1, 2, 3, 4, 4]);
});

test("a token's description has its recorded figures", () => {
  const figures = { tokens: ["def", " f"], logprobs: [0, -0.5], entropy: [], ratio: [] };
  equal(readOf(figures, 1), '2 of 2: " f", log-prob \u22120.5, p = 0.61');
  const learned = { ...figures, entropy: [0, 0.25], ratio: [1, 1.5] };
  equal(readOf(learned, 1), '2 of 2: " f", log-prob \u22120.5, p = 0.61, entropy 0.25, ratio 1.5');
});

test("a figure that was not measured is a gap", () => {
  const figures = { tokens: ["a", "b"], logprobs: [null], entropy: [null, 0.5], ratio: [1, null] };
  equal(readOf(figures, 0), '1 of 2: "a", log-prob –, p = –, entropy –, ratio 1');
  equal(readOf(figures, 1), '2 of 2: "b", log-prob –, p = –, entropy 0.5, ratio –');
  equal([bounds([null, 0.5, null, 2]), bounds([null])], ["From 0.5 to 2.", ""]);
});

test("values have bounds where there are any", () => {
  equal([bounds([]), bounds([0.5, 2, 1])], ["", "From 0.5 to 2."]);
});
