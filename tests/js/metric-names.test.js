import { chartsFrom, isOwn } from "/static/js/metrics/metric-names.js";
import { equal, test } from "./check.js";

const run = (id, ...names) => ({ id, agents: ["oak", "fern"], metrics: names.map((name) => ({ name })) });

test("what a program logged is a chart for each name, as it was logged", () => {
  const names = ["logged.train~1loss", "logged.a.oak", "logged.x~0~1y", "logged.phase.learn"];
  const charts = chartsFrom([run("a", ...names, "reward")]);
  equal(charts.map(({ id, section, title, lines }) => [id, section, title, lines.length]), [
    ["logged.a.oak", "Logged", "a.oak", 1],
    ["logged.phase.learn", "Logged", "phase.learn", 1],
    ["logged.train~1loss", "Logged", "train/loss", 1],
    ["logged.x~0~1y", "Logged", "x~/y", 1],
    ["reward", "Learning", "Reward", 1],
  ]);
});

test("metrics of all runs that belong together are one chart", () => {
  const charts = chartsFrom([run("a", "kl.oak", "kl.fern", "phase.learn", "odd.thing"), run("b", "kl.oak")]);
  equal(charts.map(({ id, section }) => [id, section]), [
    ["kl", "Training health"], ["phase", "Time"], ["odd.thing", "Other"],
  ]);
  equal(charts[0].lines.map(({ run, part }) => run + part), ["aoak", "afern", "boak"]);
  equal(chartsFrom([run("a", "kl.oak", "solved")], "starting weights").map(({ id }) => id), ["kl"]);
});

test("the team's tree is a line of the agents' validation chart", () => {
  const metrics = ["validation.agent.oak", "validation.tree", "validation.samples"].map((name) => ({ name }));
  metrics.push({ name: "validation.tree_nodes", last: { value: 8 } });
  const [chart] = chartsFrom([{ id: "a", agents: ["oak"], metrics }]);
  equal([chart.id, chart.share, chart.lines.map(({ label }) => label)], [
    "validation.agent", true, ["oak", "tree of 8", "8 independent samples"],
  ]);
});

test("each family of problems has a chart of its own", () => {
  const names = ["validation.agent.oak", "validation.stated.agent.oak", "validation.stated.tree", "test.underspecified.agent.oak"];
  const charts = chartsFrom([run("a", ...names)]);
  equal(charts.map(({ id, section, share, title, lines }) => [id, section, share, title, lines.length]), [
    ["test.underspecified.agent", "Learning", true, "Test Pass@1, underspecified", 1],
    ["validation.agent", "Learning", true, "Validation Pass@1", 1],
    ["validation.stated.agent", "Learning", true, "Validation Pass@1, fully stated", 2],
  ]);
});

test("the shares of reward hacking are one chart, its number another", () => {
  const charts = chartsFrom([run("a", "hacking.share", "hacking.of_public", "search.hacking_nodes")]);
  equal(charts.map(({ id, section, share, title, lines }) => [id, section, share, title, lines.map(({ label }) => label)]), [
    ["hacking", "Search quality", true, "Reward hacking", ["of all programs", "of those that pass the public tests"]],
    ["search.hacking_nodes", "Search quality", false, "Reward hacking (number of programs)", [""]],
  ]);
});

test("answers without a program are one chart, a line for each reason, in training and evaluations", () => {
  const names = ["no_program.no_code", "no_program.cut_at_limit", "no_program.no_answer", "validation.no_program.does_not_parse", "test.no_program.no_entry_point"];
  const charts = chartsFrom([run("a", ...names)]);
  equal(charts.map(({ id, section, share, title, lines }) => [id, section, share, title, lines.map(({ label }) => label)]), [
    ["no_program", "Search quality", true, "Answers without a program", ["no code", "cut at the limit", "no answer of the endpoint"]],
    ["test.no_program", "Evaluation", true, "Test: answers without a program", ["no entry point"]],
    ["validation.no_program", "Evaluation", true, "Validation: answers without a program", ["does not parse"]],
  ]);
});

test("rows that left are a line for each reason, rows that were learned from one for each kind", () => {
  const charts = chartsFrom([run("a", "left.low_contrast", "left.unpaired", "rows.replay", "rows.rollout")]);
  equal(charts.map(({ id, section, title, lines }) => [id, section, title, lines.map(({ label }) => label)]), [
    ["left", "Training health", "Rows left out, by reason", ["low contrast", "unpaired"]],
    ["rows", "Training health", "Rows learned from, by kind", ["replay", "rollout"]],
  ]);
});

test("machines and their devices are lines of one chart for each figure", () => {
  const names = ["node_cpu_percent.node0", "node_cpu_percent.node1", "gpu_percent.node1:0", "gpu_power_w.node1:3"];
  const charts = chartsFrom([run("a", ...names.map((name) => `system.${name}`), "system.cpu_percent")]);
  equal(charts.map(({ id, section, title, lines }) => [id, section, title, lines.map(({ label }) => label)]), [
    ["system.cpu_percent", "System", "CPU utilization (%)", [""]],
    ["system.gpu_percent", "System", "GPU utilization (%)", ["node1 GPU 0"]],
    ["system.gpu_power_w", "System", "GPU power (W)", ["node1 GPU 3"]],
    ["system.node_cpu_percent", "System", "CPU utilization per node (%)", ["node0", "node1"]],
  ]);
});

test("a figure of a method is a chart whose title, unit and section the run has", () => {
  const figures = { at_limit: { title: "Share at the limit", unit: "share", section: "Learning" }, gap: { title: "Gap", unit: "nats" } };
  const [limit, gap, other] = chartsFrom([{ ...run("a", "figures.at_limit.oak", "figures.gap.oak", "figures.gap.fern", "figures.odd_one.oak"), figures }]);
  equal([limit.id, limit.title, limit.section, limit.share, limit.hint], ["figures.at_limit", "Share at the limit", "Learning", true, ""]);
  equal([gap.title, gap.section, gap.share, gap.hint, gap.lines.length], ["Gap", "Training health", false, "nats", 2]);
  equal([other.title, other.lines[0].label], ["Odd one", "oak"]);
});

test("a figure of a gauge is a chart with its own title, a line for each part", () => {
  const figures = {
    "support.by": { title: "Who solves", unit: "share", section: "Learning" },
    "success.tag": { title: "By tag", unit: "share", section: "Learning" },
    "pace.mean": { title: "Pace", unit: "nats", section: "Search quality" },
  };
  const names = ["support.by.fern", "support.by.oak", "support.by.no_agent", "success.tag.dp~1v1.5", "pace.mean", "support.other"];
  const one = { ...run("a", ...names.map((name) => `logged.${name}`)), figures };
  equal(chartsFrom([one]).map(({ id, section, share, hint, title, lines }) => [id, section, share, hint, title, lines.map(({ label }) => label)]), [
    ["logged.support.other", "Logged", false, "", "support.other", [""]],
    ["logged.success.tag", "Learning", true, "", "By tag", ["dp/v1.5"]],
    ["logged.support.by", "Learning", true, "", "Who solves", ["oak", "fern", "no agent"]],
    ["logged.pace.mean", "Search quality", false, "nats", "Pace", [""]],
  ]);
  equal(["logged.support.by", "logged.support", "figures.any", "reward"].map((id) => isOwn(id, figures)), [true, false, true, false]);
});

test("a name that every object inherits is a name as any other", () => {
  const names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
  const figures = { "pace.mean": { title: "Pace" } };
  const one = { ...run("a", ...names.map((name) => `logged.${name}`)), figures, owners: {} };
  equal(chartsFrom([one]).map(({ section, title }) => [section, title]).sort(), names.sort().map((name) => ["Logged", name]));
  equal(names.map((name) => isOwn(`logged.${name}`, figures)), [false, false, false, false]);
  const of = chartsFrom([run("a", "figures.constructor.oak", "no_program.toString", "hacking.valueOf", "valueOf")]);
  equal(of.map(({ id, title, lines }) => [id, title, lines[0].label]), [
    ["hacking", "Reward hacking", "valueOf"],
    ["no_program", "Answers without a program", "toString"],
    ["figures.constructor", "Constructor", "oak"],
    ["valueOf", "ValueOf", ""],
  ]);
});
