/**
 * What the page of charts shows, from names and buckets of the server. Pure.
 *
 * A chart is {id, title, hint, section, share, lines: [{run, metric, part, label}]}: the metrics of all
 * runs that belong together, one line for each; `share` where values are shares of a whole. Buckets are
 * as `GET /runs/ID/metrics/NAME` tells them.
 */

const FAMILIES = ["phase", "ends", "stops", "best", "within"];
const BUDGETS = ["best", "within"];
const PHASES = ["generate", "verify", "credit", "learn", "sync", "validate", "checkpoint"];
const OF_ONE_AGENT = ["reward", "share", "validation.agent", "test.agent", "validation.error", "test.error"];
const SECTIONS = [
  ["Learning", [/^(validation|test)\.(agent|tree|samples)$/, /^(reward|solved|share)/]],
  ["Search quality", [/^(best|within|search|ends|stops|cost)/]],
  ["Training health", [
    /^(entropy|kl|clip_fraction|mismatch|lag|stale_nodes|gradient_norm|loss|policy_loss)/,
    /^step\.(filtered|dropped|refilled|carried)/, /^learning_rate/,
  ]],
  ["Time", [/^phase/, /^step\./]],
  ["System", [/^system\./]],
  ["Evaluation", [/^(validation|test)\./]],
];
const TITLES = {
  reward: "Reward",
  solved: "Solved trees",
  share: "Node share per agent",
  best: "Best score so far, over budget",
  within: "Solved within k nodes (Pass@k of the search)",
  ends: "Ends of nodes",
  stops: "Ends of generations",
  phase: "Seconds per phase",
  "validation.agent": "Validation Pass@1",
  "test.agent": "Test Pass@1",
  "search.width": "Width: children of the root",
  "search.depth": "Depth of the deepest node",
  "search.duplicates": "Programs written twice in a tree",
  "cost.tokens_per_solved": "Tokens per solved problem",
  "cost.nodes_per_solved": "Nodes per solved problem",
  clip_fraction: "Clipped share of tokens",
  kl: "KL to the starting weights",
  mismatch: "Mismatch of generator and learner",
  lag: "Staleness in policy versions",
  gradient_norm: "Gradient norm",
  "step.filtered_trees": "Trees without a signal, filtered",
  "step.filtered_share": "Share of trees without a signal",
};
const HINTS = {
  "validation.agent": "one sample, no search",
  reward: "mean raw score of a step's nodes",
  solved: "trees with a node that passes every test",
  entropy: "nats per token",
  kl: "k3 estimate",
  share: "whom the search asked",
  phase: "where a step's time goes",
};
export const AXES = ["step", "time", "tokens", "nodes"];
const DEFAULTS = { x: "step", smooth: 0, logX: false, logY: false, band: "none", from: null, to: null, q: "" };
const BANDS = ["none", "std", "ci"];
const T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]; // Student, 1 to 9 degrees

/** What the address asks for; what it does not know is as if it were not there. */
export function readView(search) {
  const fields = new URLSearchParams(search);
  const edge = (name) => (fields.get(name) && Number.isFinite(+fields.get(name)) ? +fields.get(name) : null);
  const smooth = Math.min(0.99, Math.max(0, +fields.get("smooth") || 0));
  const logs = (fields.get("log") ?? "").split("");
  const [from, to] = [edge("from"), edge("to")];
  return {
    x: AXES.includes(fields.get("x")) ? fields.get("x") : DEFAULTS.x,
    smooth,
    logX: logs.includes("x"),
    logY: logs.includes("y"),
    band: BANDS.includes(fields.get("band")) ? fields.get("band") : DEFAULTS.band,
    ...(from !== null && to !== null && from < to ? { from, to } : { from: null, to: null }),
    q: fields.get("q") ?? "",
  };
}

/** The address of a view: its runs, and what is not as it is by itself. */
export function writeView(search, view) {
  const fields = new URLSearchParams();
  for (const run of new URLSearchParams(search).getAll("run")) fields.append("run", run);
  const log = (view.logX ? "x" : "") + (view.logY ? "y" : "");
  for (const [name, value] of Object.entries({ ...view, log })) {
    if (name in DEFAULTS ? value !== DEFAULTS[name] && !name.startsWith("log") : value) fields.set(name, value);
  }
  return `?${fields}`;
}

/** The part of the steps that an address asks for: {from, to}, both null for all of them. */
export function readZoom(search) {
  const { from, to } = readView(search);
  return { from, to };
}

/** The address with this part of the steps in it, or with none. */
export function withZoom({ pathname, search, hash }, from, to) {
  const fields = new URLSearchParams(search);
  for (const [name, value] of Object.entries({ from, to })) {
    if (value === null) fields.delete(name);
    else fields.set(name, value);
  }
  return `${pathname}${fields.size ? `?${fields}` : ""}${hash}`;
}

/**
 * Charts of all runs, by section, in a fixed order. `runs` are {id, agents, owners, metrics: [{name}]};
 * `owners` has, for each agent that learns with another's weights, whose they are.
 */
export function chartsFrom(runs, wanted = "") {
  const charts = new Map();
  for (const run of runs) {
    for (const metric of run.metrics) {
      const { id, ...told } = split(metric.name, run);
      if (!charts.has(id)) charts.set(id, chartOf(id));
      charts.get(id).lines.push({ run: run.id, metric: metric.name, ...told });
    }
  }
  const text = wanted.trim().toLowerCase();
  const order = new Map(SECTIONS.map(([name], place) => [name, place]));
  const places = new Map(runs.map((run, place) => [run.id, place]));
  for (const { lines } of charts.values()) {
    lines.sort((a, b) => places.get(a.run) - places.get(b.run) || placeOf(a, runs) - placeOf(b, runs));
  }
  return [...charts.values()]
    .filter(({ id, title }) => !text || `${id} ${title}`.toLowerCase().includes(text))
    .sort((a, b) => (order.get(a.section) ?? 99) - (order.get(b.section) ?? 99) || rank(a) - rank(b)
      || a.id.localeCompare(b.id));
}

function chartOf(id) {
  return { id, title: titleOf(id), hint: HINTS[id] ?? "", section: sectionOf(id), share: isShare(id), lines: [] };
}

/** Agents in the order of their team, phases in that of a step, others after them as they came. */
function placeOf({ run, part }, runs) {
  const { agents } = runs.find(({ id }) => id === run);
  const place = agents.includes(part) ? agents.indexOf(part) : PHASES.indexOf(part);
  return place < 0 ? 99 : place;
}

/** Of which chart a metric is a line: {id, part, label}. */
function split(name, run) {
  const team = /^(validation|test)\.(tree|samples)$/.exec(name);
  if (team) return { id: `${team[1]}.agent`, part: team[2], label: ofTeam(run, ...team.slice(1)) };
  const at = name.lastIndexOf(".");
  const [head, tail] = [name.slice(0, at), name.slice(at + 1)];
  if (at > 0 && run.agents.includes(tail)) return { id: head, part: tail, label: ofAgent(run, head, tail) };
  if (at < 0 || !FAMILIES.includes(head)) return { id: name, part: "", label: "" };
  const part = BUDGETS.includes(head) ? `k = ${tail}` : tail.replaceAll("_", " ");
  return { id: head, part, label: part };
}

/** Agents that share their weights learn as one: the line of their owner names them all. */
function ofAgent({ agents, owners }, head, agent) {
  const partners = OF_ONE_AGENT.includes(head) ? [] : agents.filter((name) => owners?.[name] === agent);
  return [agent, ...partners].join(" + ");
}

function ofTeam({ metrics }, where, how) {
  const nodes = metrics.find(({ name }) => name === `${where}.tree_nodes`)?.last?.value;
  return how === "tree" ? `tree of ${nodes ?? "the team"}` : `${nodes ?? "as many"} independent samples`;
}

function rank({ id, section }) {
  const tests = SECTIONS.find(([name]) => name === section)?.[1] ?? [];
  return tests.findIndex((test) => test.test(id));
}

function sectionOf(id) {
  return SECTIONS.find(([, tests]) => tests.some((test) => test.test(id)))?.[0] ?? "Other";
}

function titleOf(id) {
  const words = id.replaceAll("_", " ").replaceAll(".", ": ");
  return TITLES[id] ?? words[0].toUpperCase() + words.slice(1);
}

/** Whether the values of a chart are shares of a whole, and so its unit is known. */
function isShare(id) {
  return /^(reward|solved|share|ends|stops|best|within|clip_fraction|search\.duplicates|step\.filtered_share|(validation|test)\.(agent|error|tree|samples))$/.test(id);
}

/**
 * The columns of a plot: {x, columns: [{mean, least, most, count}]}, one column for each of `told`.
 *
 * Slots are those buckets in which any series has a point. x of a slot lies within it, where its
 * points are; a column is null where a series has none.
 */
export function align(told, { from, to, points, log = false }) {
  const slots = [...new Set(told.flatMap(({ buckets }) => buckets.at))].sort((a, b) => a - b);
  const place = new Map(slots.map((at, index) => [at, index]));
  const sums = slots.map(() => [0, 0]);
  const columns = told.map(({ buckets }) => {
    const column = { mean: [], least: [], most: [], count: [] };
    for (const values of Object.values(column)) values.push(...slots.map(() => null));
    buckets.at.forEach((at, index) => {
      const slot = place.get(at);
      column.mean[slot] = buckets.mean[index];
      column.least[slot] = buckets.min[index];
      column.most[slot] = buckets.max[index];
      column.count[slot] = buckets.count[index];
      sums[slot][0] += (buckets.from[index] + buckets.to[index]) / 2;
      sums[slot][1] += 1;
    });
    return column;
  });
  const edge = edges(from, to, points, log);
  const x = slots.map((at, index) => {
    const middle = sums[index][0] / sums[index][1];
    return Math.min(Math.max(middle, edge(at)), edge(at + 1));
  });
  return { x, columns };
}

function edges(from, to, points, log) {
  if (!log) return (at) => from + ((to - from) * at) / points;
  const [low, high] = [from, to].map((value) => Math.log(Math.max(value, 1)));
  return (at) => Math.exp(low + ((high - low) * at) / points);
}

/** A series that the page holds, {x, values}, in buckets as the server makes them. */
export function bucketed({ x, values }, { from, to, points }) {
  const width = (to - from) / points || 1;
  const buckets = { at: [], from: [], to: [], min: [], max: [], mean: [], count: [] };
  let total = 0;
  x.forEach((place, index) => {
    const value = values[index];
    if (value === null || place < from || place > to) return;
    total += 1;
    const at = Math.min(points - 1, Math.floor((place - from) / width));
    const last = buckets.at.length - 1;
    if (buckets.at[last] !== at) {
      for (const [name, first] of Object.entries({ at, from: place, to: place, min: value, max: value, mean: value, count: 1 })) buckets[name].push(first);
      return;
    }
    const count = (buckets.count[last] += 1);
    buckets.to[last] = place;
    buckets.min[last] = Math.min(buckets.min[last], value);
    buckets.max[last] = Math.max(buckets.max[last], value);
    buckets.mean[last] += (value - buckets.mean[last]) / count;
  });
  return { points: total, buckets };
}

/** Exponential moving average, corrected for its start; holes stay holes. `weight` in [0, 1). */
export function smoothed(values, weight) {
  if (!weight) return values;
  let sum = 0;
  let share = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    share = weight * share + (1 - weight);
    return sum / share;
  });
}

/**
 * Several runs as one: {mean, least, most, count} where at least one has a value; count is of runs.
 * `kind` is "std" (sample deviation) or "ci" (95 % of the mean, Student's t).
 */
export function band(columns, kind) {
  const length = columns[0]?.length ?? 0;
  const made = { mean: [], least: [], most: [], count: [] };
  for (let slot = 0; slot < length; slot += 1) {
    const values = columns.map((column) => column[slot]).filter((value) => value !== null);
    const n = values.length;
    const mean = n ? values.reduce((sum, value) => sum + value, 0) / n : null;
    const spread = n > 1 ? Math.sqrt(values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (n - 1)) : 0;
    const reach = kind === "ci" && n > 1 ? (spread * (T95[n - 2] ?? 1.96)) / Math.sqrt(n) : spread;
    made.mean.push(mean);
    made.least.push(n ? mean - reach : null);
    made.most.push(n ? mean + reach : null);
    made.count.push(n || null);
  }
  return made;
}

/** Wilson's 95 % interval of a share of n. */
export function wilson(share, n) {
  if (!n) return [0, 1];
  const z = 1.96;
  const middle = (share + (z * z) / (2 * n)) / (1 + (z * z) / n);
  const reach = (z * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n))) / (1 + (z * z) / n);
  return [Math.max(0, middle - reach), Math.min(1, middle + reach)];
}

/**
 * Over the budget of nodes, at the newest step: [{k, best, within, low, high}], with the interval of
 * `within` over the trees of that step; nothing before a step has ended. `metrics` are of one run.
 */
export function overBudget(metrics) {
  const values = new Map(metrics.map(({ name, last }) => [name, last]));
  const trees = values.get("search.trees");
  if (!trees) return [];
  return metrics
    .filter(({ name, last }) => name.startsWith("within.") && last.step === trees.step)
    .map(({ name, last }) => {
      const k = Number(name.slice("within.".length));
      const [low, high] = wilson(last.value, trees.value);
      return { k, best: values.get(`best.${k}`)?.value ?? null, within: last.value, low, high };
    })
    .sort((a, b) => a.k - b.k);
}
