import { band } from "/static/js/metrics/metric-buckets.js";
import { pass1Interval, sourcesOf, withInterval } from "/static/js/metrics/metric-intervals.js";
import { linesOf } from "/static/js/metrics/metric-lines.js";
import { equal, ok, test } from "./check.js";

function near(actual, expected, error = 1e-6) {
  ok(Math.abs(actual - expected) < error, `${actual} is not near ${expected}`);
}

const errorOf = (share, n) => Math.sqrt((share * (1 - share)) / (n - 1)); // of n problems, one answer each

test("agents have a series of errors, teams none, and other metrics no interval", () => {
  equal(sourcesOf("validation.agent.oak.2"), { error: "validation.error.oak.2", problems: "validation.problems" });
  equal(sourcesOf("test.tree"), { error: null, problems: "test.problems" });
  equal([sourcesOf("reward.oak"), sourcesOf("validation.error.oak"), sourcesOf("validation.problems")], [null, null, null]);
});

test("with one answer per problem it is Wilson's interval, for every number of problems", () => {
  // scipy.stats.binomtest(k, n).proportion_ci(method="wilson")
  const known = [[1, 2, 0.0945312, 0.9054688], [3, 8, 0.1368442, 0.6942576], [30, 100, 0.2189489, 0.3958485], [1, 300, 0.0005886, 0.0186367]];
  for (const [k, n, low, high] of known) {
    const interval = pass1Interval(k / n, errorOf(k / n, n), n);
    near(interval[0], low, 1e-6);
    near(interval[1], high, 1e-6);
  }
});

test("where all problems have the same result it is that of so many problems, and never of width 0", () => {
  near(pass1Interval(0, 0, 8)[1], 0.3244076, 1e-6);
  near(pass1Interval(1, 0, 8)[0], 0.6755924, 1e-6);
});

test("several answers per problem narrow it", () => {
  const [one, four] = [errorOf(0.5, 20), errorOf(0.5, 20) / 2].map((error) => pass1Interval(0.5, error, 20));
  equal(four[1] - four[0] < 0.6 * (one[1] - one[0]), true);
});

test("a column has the interval at every point, and none where the number of problems is not known", () => {
  const column = { mean: [0.5, null, 0], least: [0.5, null, 0], most: [0.5, null, 0], count: [1, null, 1] };
  const made = withInterval(column, [errorOf(0.5, 2), null, 0], 2);
  equal([made.interval, made.mean, made.least[1], made.most[1]], [true, column.mean, null, null]);
  near(made.least[0], 0.0945312, 1e-6);
  near(made.most[2], 0.6576198, 1e-6);
  equal(withInterval(column, null, undefined), column);
});

test("of several seeds the interval is Student's of their mean, and a seed alone keeps its own", () => {
  const one = { mean: [0.2, 0.4], least: [0.1, 0.3], most: [0.3, 0.5], interval: true };
  const two = { mean: [0.4, null], least: [0.3, null], most: [0.5, null], interval: true };
  const made = band([one, two], "ci");
  near(made.most[0], 0.3 + 12.7062 * 0.1, 1e-4);
  equal([made.mean[1], made.least[1], made.most[1], made.count[1]], [0.4, 0.3, 0.5, 1]);
  equal(band([one, two], "std").least[1], 0.4);
});

test("a smoothed line has its interval about it", () => {
  const run = { id: "a", group: "g", name: "demo", label: "demo", agents: ["oak"], owners: {}, metrics: [] };
  const chart = { id: "validation.agent", lines: [{ run: "a", metric: "validation.agent.oak", part: "oak", label: "oak" }] };
  const column = { mean: [0, 1], least: [0, 0.8], most: [0.2, 1], count: [1, 1], interval: true };
  const [line] = linesOf(chart, [column], { smooth: 0.5, logY: false, band: "none" }, new Map([["a", run]]));
  equal([line.least[1] < line.mean[1], line.mean[1] < line.most[1], line.interval], [true, true, true]);
});
