import { overBudget } from "/static/js/metrics/metric-buckets.js";
import { passkChart, paths, scales } from "/static/js/metrics/passk-chart.js";
import { equal, ok, test } from "./check.js";

const last = (value) => ({ step: 4, value });
const metrics = [
  { name: "search.trees", last: last(10) }, { name: "within.1", last: last(0.2) },
  { name: "within.2", last: last(0.5) }, { name: "within.8", last: last(1) },
];
const heights = (path) => path.match(/,[\d.]+/g).map((part) => Number(part.slice(1)));

test("the x axis is logarithmic, and shares run from bottom to top", () => {
  const { x, y } = scales(8);
  ok(Math.abs(x(2) - x(1) - (x(4) - x(2))) < 1e-9 && x(8) > x(4), [1, 2, 4, 8].map(x).join());
  ok(y(0) > y(0.5) && y(0.5) > y(1), "a larger share is not higher");
});

test("the band holds the line, and is that of Wilson's interval", () => {
  const scale = scales(8);
  const rows = overBudget(metrics);
  const { line, band } = paths(rows, scale);
  const [on, around] = [heights(line), heights(band)];
  equal([on.length, around.length], [3, 6]);
  rows.forEach(({ low, high }, index) => {
    const [below, above] = [around[index], around[5 - index]];
    ok(below >= on[index] && above <= on[index] && below > above, `at ${index}: ${below}, ${on[index]}, ${above}`);
    equal([below, above], [low, high].map((share) => Number(scale.y(share).toFixed(1))));
  });
});

test("every run has a line, a band and a description of its own", () => {
  const rows = overBudget(metrics);
  const chart = passkChart([{ label: "one", rows }, { label: "two", rows: rows.slice(0, 1) }]);
  equal([".band", ".line", ".dot"].map((part) => chart.querySelectorAll(part).length), [2, 2, 4]);
  ok(chart.getAttribute("aria-label").includes("one: 100 %") || chart.getAttribute("aria-label").includes("one: 100.0"), chart.getAttribute("aria-label"));
  equal([...chart.querySelectorAll("text")].map((node) => node.textContent).slice(-3), ["1", "2", "8"]);
});
