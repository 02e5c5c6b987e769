import { chartsFrom } from "/static/js/metric-names.js";
import { equal, test } from "./check.js";

const run = (id, ...names) => ({ id, agents: ["oak", "fern"], metrics: names.map((name) => ({ name })) });

test("metrics of all runs that belong together are one chart", () => {
  const charts = chartsFrom([run("a", "kl.oak", "kl.fern", "phase.learn", "odd.thing"), run("b", "kl.oak")]);
  equal(charts.map(({ id, section }) => [id, section]), [
    ["kl", "Training health"], ["phase", "Time"], ["odd.thing", "Other"],
  ]);
  equal(charts[0].lines.map(({ run, part }) => run + part), ["aoak", "afern", "boak"]);
  equal(chartsFrom([run("a", "kl.oak", "solved")], "starting weights").map(({ id }) => id), ["kl"]);
});

test("the team's tree stands beside the agents whose validation it is of", () => {
  const metrics = ["validation.agent.oak", "validation.tree", "validation.samples"].map((name) => ({ name }));
  metrics.push({ name: "validation.tree_nodes", last: { value: 8 } });
  const [chart] = chartsFrom([{ id: "a", agents: ["oak"], metrics }]);
  equal([chart.id, chart.share, chart.lines.map(({ label }) => label)], [
    "validation.agent", true, ["oak", "tree of 8", "8 independent samples"],
  ]);
});
