/**
 * What the charts show, from a state of the fold. Pure.
 *
 * A chart is {id, title, hint, unit: "share" | "number" | "seconds", stacked, x: [step],
 * lines: [{name, label, agent?, values}]}; a value is null where a step says nothing.
 */

const PHASES = ["generate", "verify", "credit", "learn", "sync", "validate", "checkpoint"];
const isOther = (name) => !PHASES.includes(name);

/** All charts of the run page, in their order. */
export function chartsOf(state, agents) {
  return [
    validation(state, agents),
    reward(state, agents),
    solved(state),
    perUpdate(state, agents, "entropy", "Entropy", "nats per token"),
    perUpdate(state, agents, "kl", "KL to the starting weights", "k3 estimate"),
    shares(state, agents),
    phases(state),
  ];
}

function validation(state, agents) {
  const rows = merged(state.evaluations.filter((item) => item.split === "validation"));
  const lines = agents.map((agent) => line(agent, rows.map((row) => row.agents[agent] ?? null), agent));
  if (rows.some((row) => row.tree !== null && row.tree !== undefined)) {
    const nodes = rows.find((row) => row.tree_nodes)?.tree_nodes;
    lines.push(line("team", rows.map((row) => row.tree ?? null), null, `tree@${nodes}`));
  }
  return chart("validation", "Validation Pass@1", "one sample, no search", "share", rows, lines);
}

function reward(state, agents) {
  const { steps } = state;
  const lines = agents.map((agent) =>
    line(agent, steps.map((step) => step.reward_by_agent?.[agent] ?? null), agent),
  );
  if (agents.length > 1) lines.push(line("mean", steps.map((step) => step.reward)));
  return chart("reward", "Reward", "mean raw score of a step's nodes", "share", steps, lines);
}

function solved(state) {
  const values = state.steps.map((step) => step.solved);
  const hint = "trees with a node that passes every test";
  return chart("solved", "Solved trees", hint, "share", state.steps, [line("solved", values)]);
}

/** Agents that share their weights learn as one: one line, that of their owner, names them all. */
function perUpdate(state, agents, field, title, hint) {
  const steps = [...new Set(state.updates.map((update) => update.step))].sort((a, b) => a - b);
  const place = new Map(steps.map((step, index) => [step, index]));
  const partners = new Map(state.updates.map((update) => [update.agent, update.shared_with ?? []]));
  const without = new Set([...partners.values()].flat());
  const lines = agents
    .filter((agent) => !without.has(agent))
    .map((agent) => {
      const label = [agent, ...(partners.get(agent) ?? [])].join(" + ");
      return line(agent, steps.map(() => null), agent, label);
    });
  const byAgent = new Map(lines.map((item) => [item.name, item]));
  for (const update of state.updates) {
    const item = byAgent.get(update.agent);
    if (item) item.values[place.get(update.step)] = update[field];
  }
  return chart(field, title, hint, "number", steps.map((step) => ({ step })), lines);
}

function shares(state, agents) {
  const { steps } = state;
  const lines = agents.map((agent) =>
    line(agent, steps.map((step) => step.node_share?.[agent] ?? 0), agent),
  );
  const hint = "whom the search asked";
  return { ...chart("share", "Node share per agent", hint, "share", steps, lines), stacked: true };
}

function phases(state) {
  const { steps } = state;
  const told = new Set(steps.flatMap((step) => Object.keys(step.phases ?? {})));
  const names = [...PHASES.filter((name) => told.has(name)), ...[...told].filter(isOther)];
  const lines = names.map((name) => line(name, steps.map((step) => step.phases?.[name] ?? 0)));
  const made = chart("phases", "Seconds per phase", "where a step's time goes", "seconds", steps, lines);
  return { ...made, stacked: true };
}

function chart(id, title, hint, unit, rows, lines) {
  return { id, title, hint, unit, stacked: false, x: rows.map((row) => row.step), lines };
}

function line(name, values, agent = null, label = name) {
  return { name, label, agent, values };
}

/** One row per step: the later result of a step wins. */
function merged(rows) {
  const byStep = new Map(rows.map((row) => [row.step, row]));
  return [...byStep.values()].sort((a, b) => a.step - b.step);
}

/** Cumulative sums, the last line on top: what a stacked chart draws. */
export function stack(lines) {
  const sums = [];
  return lines.map(({ values }) =>
    values.map((value, index) => (sums[index] = (sums[index] ?? 0) + (value ?? 0))),
  );
}

/** First and last result of the test split: what the run achieved; null before both exist. */
export function result(state) {
  const tests = merged(state.evaluations.filter((item) => item.split === "test"));
  return tests.length < 2 ? null : { before: tests[0], after: tests.at(-1) };
}

/** First and newest validation result per agent: [{agent, before, now}]. */
export function validationChange(state, agents) {
  const rows = merged(state.evaluations.filter((item) => item.split === "validation"));
  return agents.map((agent) => ({
    agent,
    before: rows[0]?.agents[agent] ?? null,
    now: rows.at(-1)?.agents[agent] ?? null,
  }));
}

/** The checkpoint with the highest mean validation so far, which the run keeps; null before one. */
export function bestCheckpoint(state) {
  return state.checkpoints.findLast((one) => one.best) ?? null;
}
