import { align, band, overBudget, smoothed, wilson } from "/static/js/metrics/metric-buckets.js";
import { equal, ok, test } from "./check.js";

const near = (a, b) => ok(Math.abs(a - b) < 1e-3, `${a} is not ${b}`);
const series = (at, x, mean) => ({
  buckets: { at, from: x, to: x, min: mean.map((v) => v - 1), max: mean.map((v) => v + 1), mean, count: at.map(() => 1) },
});

test("buckets of several series share their slots, and gaps stay gaps", () => {
  const { x, columns } = align([series([0, 2], [0, 25], [1, 3]), series([2], [29], [5])], { from: 0, to: 100, points: 10 });
  equal(x, [0, 27]);
  equal(columns[1].mean, [null, 5]);
  equal(columns[0].most, [2, 4]);
});

test("a gap has a slot of its own, and is one of its series alone", () => {
  const first = { ...series([0, 4], [0, 40], [1, 3]), gaps: { at: [2], x: [23] } };
  const { x, columns } = align([first, series([0, 2, 4], [0, 25, 40], [1, 2, 3])], { from: 0, to: 100, points: 10 });
  equal([x, columns[0].mean, columns[0].gap, columns[1].gap], [[0, 24, 40], [1, null, 3], [false, true, false], [false, false, false]]);
  equal(band(columns, "std").gap, [false, false, false]);
  equal(band([columns[0], columns[0]], "std").gap, [false, true, false]);
});

test("x increases from slot to slot whatever the points are", () => {
  const wide = { buckets: { at: [0, 1], from: [0, 10], to: [25, 11], min: [0, 0], max: [1, 1], mean: [0, 1], count: [9, 2] } };
  const { x } = align([wide], { from: 0, to: 100, points: 10 });
  ok(x[0] <= x[1] && x[0] <= 10, x.join());
  const logs = align([series([9], [1000], [1])], { from: 0, to: 1000, points: 10, log: true });
  equal(logs.x.map(Math.round), [1000]);
});

test("smoothing is corrected for its start and skips gaps", () => {
  equal(smoothed([1, null, 1], 0.9).map((v) => v && Number(v.toFixed(9))), [1, null, 1]);
  equal(smoothed([0, 1], 0.5).map((v) => Number(v.toFixed(4))), [0, 0.6667]);
});

test("seeds become a mean with deviation or interval", () => {
  const std = band([[1, null], [3, 4]].map((mean) => ({ mean })), "std");
  equal([std.mean, std.count], [[2, 4], [2, 1]]);
  near(std.most[0], 2 + Math.SQRT2);
  near(band([{ mean: [1] }, { mean: [3] }], "ci").most[0], 2 + 12.706);
  equal(band([{ mean: [null] }, { mean: [null] }], "std"), { mean: [null], least: [null], most: [null], count: [null], gap: [false] });
});

test("Wilson's interval matches published values", () => {
  const [low, high] = wilson(0.5, 10);
  near(low, 0.2366);
  near(high, 0.7634);
  equal(wilson(1, 0), [0, 1]);
});

test("over the budget: the newest step's trees, with their interval", () => {
  const last = (step, value) => ({ step, value });
  const metrics = [
    { name: "search.trees", last: last(4, 10) }, { name: "within.2", last: last(4, 0.5) },
    { name: "within.1", last: last(4, 0.25) }, { name: "best.1", last: last(4, 0.4) },
    { name: "within.16", last: last(2, 1) },
  ];
  equal(overBudget(metrics).map(({ k, best, within }) => [k, best, within]), [[1, 0.4, 0.25], [2, null, 0.5]]);
  equal(overBudget([]), []);
});
