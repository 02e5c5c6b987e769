import { partsOf, waitsText } from "/static/js/run/waterfall.js";
import { equal, test } from "./check.js";

test("a step's phases are in their order, then the time in none", () => {
  const parts = partsOf({ seconds: 10, phases: { learn: 3, generate: 4, odd: 1 } });
  equal(parts.map(({ name, seconds }) => `${name} ${seconds}`), ["generate 4", "learn 3", "odd 1", "other 2"]);
  equal(partsOf({ seconds: 4, phases: { learn: 4 } }).length, 1);
});

test("waits are named, the longest first", () => {
  equal(waitsText({ sandbox: 0.3, weights: 1.25 }), "weights 1.25 s, sandbox 300 ms");
  equal(waitsText({}), "");
});

test("seconds that were not measured are no part", () => {
  equal(partsOf({ seconds: null, phases: { learn: 3, generate: null, odd: null } }), [{ name: "learn", seconds: 3 }]);
  equal(partsOf({ seconds: null, phases: {} }), []);
});
