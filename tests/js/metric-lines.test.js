import { interrupted, isStacked, linesOf, lonely, stack } from "/static/js/metrics/metric-lines.js";
import { chartsFrom } from "/static/js/metrics/metric-names.js";
import { equal, test } from "./check.js";

const VIEW = { smooth: 0, logY: false, band: "none" };
const run = (id, group, ...names) => ({
  id, group, name: "demo", label: `demo ${id}`, agents: ["oak", "fern", "elm"], owners: { fern: "oak" },
  metrics: names.map((name) => ({ name })),
});
const column = (...mean) => ({ mean, least: mean, most: mean, count: mean.map(() => 1) });

function lines(runs, view = VIEW) {
  const [chart] = chartsFrom(runs);
  const columns = chart.lines.map((_, index) => column(index, index + 1));
  return linesOf(chart, columns, view, new Map(runs.map((one) => [one.id, one])));
}

test("an agent has the look of its position, the others that of the team", () => {
  equal(lines([run("a", "g", "reward.elm", "reward")]).map(({ label, token, dash }) => [label, token, dash]), [
    ["elm", "--agent-3", 2], ["all", "--line-team", 0],
  ]);
});

test("agents that learn as one have one line, which names them all", () => {
  equal(lines([run("a", "g", "kl.oak", "kl.elm")]).map(({ label }) => label), ["oak + fern", "elm"]);
  equal(lines([run("a", "g", "reward.oak")]).map(({ label }) => label), ["oak"]);
});

test("several runs differ by colour, and by dash where each has one line", () => {
  const two = lines([run("a", "g", "solved"), run("b", "g", "solved")]);
  equal(two.map(({ label, token, dash }) => [label, token, dash]), [
    ["demo a", "--agent-1", 0], ["demo b", "--agent-2", 1],
  ]);
  const [seeds] = lines([run("a", "g", "solved"), run("b", "g", "solved")], { ...VIEW, band: "std" });
  equal([seeds.label, seeds.mean], ["demo, 2 seeds", [0.5, 1.5]]);
  const varied = ["a", "b", "c", "d"].map((id, index) => ({ ...run(id, `g${index >> 1}`, "solved"), variant: `rho = 0.${index >> 1}` }));
  equal(lines(varied, { ...VIEW, band: "ci" }).map(({ label }) => label), ["demo, rho = 0.0, 2 seeds", "demo, rho = 0.1, 2 seeds"]);
});

test("parts of one run's whole are stacked, in the order of a step", () => {
  const runs = [run("a", "g", "phase.learn", "phase.odd", "phase.generate")];
  equal(lines(runs).map(({ label, token }) => [label, token]), [
    ["generate", "--phase-1"], ["learn", "--phase-2"], ["odd", "--phase-3"],
  ]);
  equal(stack([column(1, null), column(2, 3)]), [[1, 0], [3, 3]]);
  const map = new Map([["a", runs[0]]]);
  equal([isStacked("phase", map, VIEW), isStacked("kl", map, VIEW), isStacked("phase", map, { ...VIEW, logY: true })], [true, false, false]);
});

test("a line ends before a gap, passes over slots of other lines, and points between gaps are drawn", () => {
  const values = [1, null, 3, null, null, 6, null];
  equal(interrupted(values, values.map((_, slot) => slot === 4 || slot === 6)), [1, undefined, 3, null, null, 6, undefined]);
  equal(interrupted(values), [1, undefined, 3, undefined, undefined, 6, undefined]);
  equal(lonely([1, undefined, 3, null, null, 6, undefined]), [5]);
  equal(lonely([1, undefined, 3, null, 5, 6]), null);
  equal(lonely([undefined, 2]), [1]);
});

test("a stack has no whole where a part of it has a gap", () => {
  const gap = [false, true, false];
  equal(stack([{ ...column(1, null, 1), gap }, column(2, 3, 4)]), [[1, null, 1], [3, null, 5]]);
});
