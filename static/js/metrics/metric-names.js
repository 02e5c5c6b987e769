/**
 * Charts by the names of the series that the server has. Pure.
 *
 * A chart is {id, title, hint, section, share, lines: [{run, metric, part, label}]}: the metrics of all
 * runs that belong together, one line for each; `share` if values are fractions of a whole.
 */

import { own } from "../lib/own.js";
import { isLogged, loggedName } from "../run/logged-names.js";

export const FIGURES = "figures.";
const LOGGED = "logged.";
const FAMILIES = ["phase", "left", "rows", "ends", "stops", "best", "within", "hacking", "no_program", "validation.no_program", "test.no_program"];
const BUDGETS = ["best", "within"];
const PHASES = ["generate", "verify", "credit", "learn", "sync", "validate", "checkpoint"];
const SPLIT = "(validation|test)(?:\\.(?:stated|underspecified))?";
const OF_ONE_AGENT = new RegExp(`^(reward|share|${SPLIT}\\.(agent|error))$`);
const OF_TEAM = new RegExp(`^(${SPLIT})\\.(tree|samples)$`);
const SHARES = new RegExp(
  "^(reward|solved|share|ends|stops|best|within|hacking|no_program|clip_fraction|search\\.duplicates|step\\.filtered_share|" +
    `${SPLIT}\\.(agent|error|tree|samples|no_program))$`,
);
const SECTIONS = [
  ["Logged", [/^logged\./]], // first: the name itself may be any
  ["Learning", [new RegExp(`^${SPLIT}\\.(agent|tree|samples)$`), /^(reward|solved|share)/]],
  ["Search quality", [/^(best|within|hacking|search|ends|no_program|stops|cost)/]],
  ["Training health", [
    /^(entropy|kl|clip_fraction|mismatch|lag|stale_nodes|gradient_norm|loss|policy_loss)/,
    /^(left|rows)$/, /^step\.(filtered|dropped|refilled|carried)/, /^learning_rate/,
  ]],
  ["Time", [/^phase/, /^step\./]],
  ["System", [/^system\./]],
  ["Evaluation", [/^(validation|test)\./]],
];
const TITLES = {
  reward: "Reward",
  solved: "Solved trees",
  share: "Node share per agent",
  best: "Best score over budget",
  within: "Solved within k nodes (Pass@k of the search)",
  hacking: "Reward hacking",
  "search.hacking_nodes": "Reward hacking (number of programs)",
  ends: "Node outcomes",
  no_program: "Answers without a program",
  "validation.no_program": "Validation: answers without a program",
  "test.no_program": "Test: answers without a program",
  stops: "Generation stop reasons",
  phase: "Seconds per phase",
  left: "Rows left out, by reason",
  rows: "Rows learned from, by kind",
  "validation.agent": "Validation Pass@1",
  "test.agent": "Test Pass@1",
  "validation.stated.agent": "Validation Pass@1, fully stated",
  "validation.underspecified.agent": "Validation Pass@1, underspecified",
  "test.stated.agent": "Test Pass@1, fully stated",
  "test.underspecified.agent": "Test Pass@1, underspecified",
  "search.width": "Width (children of the root)",
  "search.depth": "Depth (deepest node)",
  "search.duplicates": "Duplicate programs in a tree",
  "cost.tokens_per_solved": "Tokens per solved problem",
  "cost.nodes_per_solved": "Nodes per solved problem",
  clip_fraction: "Clipped share of tokens",
  kl: "KL to the starting weights",
  mismatch: "Generator–learner mismatch",
  lag: "Staleness in policy versions",
  gradient_norm: "Gradient norm",
  "step.seconds": "Seconds per step",
  "system.cpu_percent": "CPU utilization (%)",
  "system.memory_mb": "Memory (MB)",
  "system.node_cpu_percent": "CPU utilization per node (%)",
  "system.node_memory_percent": "Memory per node (%)",
  "system.node_memory_mb": "Memory per node (MB)",
  "system.node_disk_percent": "Disk usage per node (%)",
  "system.node_disk_free_gb": "Free disk per node (GB)",
  "system.node_disk_read_mb_per_s": "Disk read (MB/s)",
  "system.node_disk_write_mb_per_s": "Disk write (MB/s)",
  "system.node_network_in_mb_per_s": "Network in (MB/s)",
  "system.node_network_out_mb_per_s": "Network out (MB/s)",
  "system.gpu_percent": "GPU utilization (%)",
  "system.gpu_memory_percent": "GPU memory (%)",
  "system.gpu_memory_mb": "GPU memory (MB)",
  "system.gpu_power_w": "GPU power (W)",
  "step.filtered_trees": "Filtered trees (no signal)",
  "step.filtered_share": "Share of trees without a signal",
};
const HINTS = {
  "validation.agent": "no search, 95 % interval",
  "test.agent": "95 % interval",
  reward: "mean raw score of a step's nodes",
  solved: "trees with a node that passes every test",
  entropy: "nats per token",
  kl: "k3 estimate",
  share: "nodes by agent",
  phase: "where a step's time goes",
  hacking: "pass every public test, fail a private one",
  no_program: "by reason, of all answers",
  "search.hacking_nodes": "pass every public test, fail a private one",
};
const NO_PROGRAM = {
  no_code: "no code", does_not_parse: "does not parse", no_entry_point: "no entry point", cut_at_limit: "cut at the limit",
  no_answer: "no answer of the endpoint",
};
const HACKING = { share: "of all programs", of_public: "of those that pass the public tests" };

/**
 * Returns the charts of all runs, by section, in a fixed order. `runs` are {id, agents, owners,
 * figures, metrics: [{name}]}; `owners` maps each agent that learns with another's weights to their
 * owner, `figures` the figures that its methods report of themselves to {title, unit, section}.
 */
export function chartsFrom(runs, query = "") {
  const charts = new Map();
  for (const run of runs) {
    for (const metric of run.metrics) {
      const { id, ...line } = ofLogged(metric.name, run.figures) ?? split(metric.name, run);
      if (!charts.has(id)) charts.set(id, chartOf(id, run.figures));
      charts.get(id).lines.push({ run: run.id, metric: metric.name, ...line });
    }
  }
  const text = query.trim().toLowerCase();
  const order = new Map(SECTIONS.map(([name], index) => [name, index]));
  const runOrder = new Map(runs.map((run, index) => [run.id, index]));
  for (const { lines } of charts.values()) {
    lines.sort((a, b) => runOrder.get(a.run) - runOrder.get(b.run) || lineOrder(a, runs) - lineOrder(b, runs));
  }
  return [...charts.values()]
    .filter(({ id, title }) => !text || `${id} ${title}`.toLowerCase().includes(text))
    .sort((a, b) => (order.get(a.section) ?? 99) - (order.get(b.section) ?? 99) || rank(a) - rank(b)
      || a.id.localeCompare(b.id));
}

/** Returns whether a chart is of numbers that a run's methods report, whose titles stand beside them. */
export function isOwn(id, figures) {
  return id.startsWith(FIGURES) || (isLogged(id) && Boolean(own(figures, id.slice(LOGGED.length))));
}

/** Returns the chart of which a method's logged figure is a line, {id, part, label}: "logged.METHOD.FIGURE.PART"; null for
 * others. */
function ofLogged(name, figures) {
  if (!isLogged(name)) return null;
  const [method, figure] = name.slice(LOGGED.length).split(".");
  if (!own(figures, `${method}.${figure}`)) return null;
  const id = `${LOGGED}${method}.${figure}`;
  const part = loggedName(LOGGED + name.slice(id.length + 1));
  return { id, part, label: part.replaceAll("_", " ") };
}

function chartOf(id, figures) {
  if (isLogged(id) && isOwn(id, figures)) return figureOf(id, figures[id.slice(LOGGED.length)]);
  if (id.startsWith(FIGURES)) return figureOf(id, own(figures, id.slice(FIGURES.length)));
  return { id, title: titleOf(id), hint: own(HINTS, id) ?? "", section: sectionOf(id), share: isShare(id), lines: [] };
}

/** Chart of a figure that a method reports of itself; its title stands beside the method. */
function figureOf(id, { title, unit = "", section = "Training health" } = {}) {
  const share = unit === "share";
  return { id, title: title ?? titleOf(id.slice(FIGURES.length)), hint: share ? "" : unit, section, share, lines: [] };
}

/** Position of a line: agents in the order of their team, phases in that of a step, others last. */
function lineOrder({ run, part }, runs) {
  const { agents } = runs.find(({ id }) => id === run);
  const index = agents.includes(part) ? agents.indexOf(part) : PHASES.indexOf(part);
  return index < 0 ? 99 : index;
}

/** Returns the chart of which a metric is a line: {id, part, label}. */
function split(name, run) {
  if (isLogged(name)) return { id: name, part: "", label: "" };
  const team = OF_TEAM.exec(name);
  if (team) return { id: `${team[1]}.agent`, part: team[3], label: ofTeam(run, team[2], team[3]) };
  const machine = /^(system\.(?:node|gpu)_[a-z_]+|system\.gpu_percent)\.(.+)$/.exec(name);
  if (machine) return { id: machine[1], part: machine[2], label: machine[2].replace(/:(\d+)$/, " GPU $1") };
  const at = name.lastIndexOf(".");
  const [head, tail] = [name.slice(0, at), name.slice(at + 1)];
  if (at > 0 && run.agents.includes(tail)) return { id: head, part: tail, label: ofAgent(run, head, tail) };
  if (at < 0 || !FAMILIES.includes(head)) return { id: name, part: "", label: "" };
  const part = partOf(head, tail);
  return { id: head, part, label: part };
}

function partOf(head, tail) {
  if (BUDGETS.includes(head)) return `k = ${tail}`;
  const named = own(head.endsWith("no_program") ? NO_PROGRAM : head === "hacking" ? HACKING : {}, tail);
  return named ?? tail.replaceAll("_", " ");
}

/** Agents that share their weights learn as one: the line of their owner names them all. */
function ofAgent({ agents, owners }, head, agent) {
  const partners = OF_ONE_AGENT.test(head) ? [] : agents.filter((name) => own(owners, name) === agent);
  return [agent, ...partners].join(" + ");
}

function ofTeam({ metrics }, where, how) {
  const nodes = metrics.find(({ name }) => name === `${where}.tree_nodes`)?.last?.value;
  return how === "tree" ? `tree of ${nodes ?? "the team"}` : `${nodes ?? ""} independent samples`.trim();
}

function rank({ id, section }) {
  const tests = SECTIONS.find(([name]) => name === section)?.[1] ?? [];
  return tests.findIndex((test) => test.test(id));
}

function sectionOf(id) {
  return SECTIONS.find(([, tests]) => tests.some((test) => test.test(id)))?.[0] ?? "Other";
}

function titleOf(id) {
  if (isLogged(id)) return loggedName(id);
  const words = id.replaceAll("_", " ").replaceAll(".", ": ");
  return own(TITLES, id) ?? words[0].toUpperCase() + words.slice(1);
}

/** Returns whether the values of a chart are fractions of a whole, so that its unit is known. */
function isShare(id) {
  return SHARES.test(id);
}
