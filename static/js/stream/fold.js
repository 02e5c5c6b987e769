/**
 * The fold: state(seq) = fold(the log up to seq). Free of the DOM, the clock and randomness.
 *
 * Invariants:
 * - Applying an event whose seq is not above `state.seq` changes nothing, so replays are harmless.
 * - `run.resumed {step}` voids everything recorded of later steps (engine/events/vocabulary.py).
 * - Only the trees of the two newest steps are kept, and of values that a program logged the newest of
 *   each of the last 100 names: memory does not grow with the run.
 * - A node's parent is the root (0) or a node that was opened before it, whatever the log says: a
 *   walk up a tree ends. A node that is opened again, or as the root, is ignored.
 *
 * An event is [seq, milliseconds, kind, payload]; `tree` and `node` are in the payload.
 */

const MAX_LOG_LINES = 200;
const MAX_SYSTEM_SAMPLES = 600;
const MAX_NAMES = 100; // of each kind of logged value
const LOGGED_KINDS = ["texts", "tables", "histograms", "images", "nonfinite"];

export function emptyState() {
  return {
    seq: 0,
    time: 0, // of the newest event, ms
    startedAt: 0, // of the first event, ms
    run: { state: "queued", reason: "", since: 0 },
    plan: { steps: 0, agents: [], minutes: null },
    step: 0, // newest step that started; 0 before the first
    stepStartedAt: 0,
    steps: [], // payloads of step.end, one per step, in order
    updates: [], // payloads of agent.update, in order
    evaluations: [], // payloads of eval.result, in order
    checkpoints: [], // payloads of checkpoint.saved, in order
    health: [], // payloads of health that opened a warning, in order, each with the one that closed it
    answer: null, // payload of search.answer, of a search at test time
    trees: new Map(), // tree id -> tree, of the two newest steps
    waiting: null, // {name, deadline, since, done, total}
    error: null, // the first cause since the run last resumed
    logs: [],
    system: [],
    resumes: 0,
    logged: emptyLogged(),
  };
}

/** What a program logged: the newest {value, step, time, seq} of each name, by kind. */
function emptyLogged() {
  return { step: 0, seq: 0, ...Object.fromEntries(LOGGED_KINDS.map((kind) => [kind, new Map()])) };
}

/** Folds events into a state, in place; returns the state. */
export function fold(events, state = emptyState()) {
  for (const event of events) apply(state, event);
  return state;
}

/** Applies one event; returns false if the state already holds it. */
export function apply(state, [seq, time, kind, payload]) {
  if (seq <= state.seq) return false;
  state.seq = seq;
  state.time = time;
  state.startedAt ||= time;
  HANDLERS[kind]?.(state, payload, time, seq);
  return true;
}

const HANDLERS = {
  "run.state": runState,
  "run.resumed": runResumed,
  "run.waiting": (state, payload, time) => {
    const before = state.waiting;
    const { name, deadline_seconds: deadline, done = 0, total = 0 } = payload;
    // A wait that is reported again, with more progress, is the same wait.
    const since = before?.name === name ? before.since : time;
    state.waiting = name ? { name, deadline, since, done, total } : null;
  },
  "run.planned": (state, payload) => {
    state.plan = {
      steps: payload.steps,
      agents: payload.agents,
      minutes: payload.minutes ?? null,
    };
  },
  "step.start": (state, payload, time) => {
    state.step = payload.step;
    state.stepStartedAt = time;
    dropOldTrees(state);
  },
  "step.end": (state, payload, time, seq) => {
    putByStep(state.steps, { ...payload, time, seq });
  },
  "tree.open": (state, payload, time, seq) => {
    const id = payload.tree;
    state.trees.set(id, {
      id,
      step: payload.step,
      problem: payload.problem,
      statement: payload.statement,
      difficulty: payload.difficulty ?? 0,
      nodes: new Map(),
      closed: false,
      solved: false,
      meanScore: null,
      filtered: false,
      seq, // of the newest event about it
    });
  },
  "node.open": (state, payload, time, seq) => {
    const nodes = touchTree(state, payload, seq)?.nodes;
    if (!nodes || payload.node === 0 || nodes.has(payload.node)) return;
    nodes.set(payload.node, {
      id: payload.node,
      tree: payload.tree,
      agent: payload.agent,
      parent: nodes.has(payload.parent) ? payload.parent : 0,
      depth: payload.depth,
      draws: payload.draws,
      openedAt: time,
      openedSeq: seq,
      closed: false,
      score: null,
      shaped: null,
      advantage: null,
    });
  },
  "node.close": (state, payload, time, seq) => {
    const tree = touchTree(state, payload, seq);
    const node = tree?.nodes.get(payload.node);
    if (!node) return;
    Object.assign(node, {
      closed: true,
      closedAt: time,
      closedSeq: seq,
      program: payload.program,
      verdict: payload.verdict,
      score: payload.score,
      fraction: payload.fraction,
      tests: payload.tests,
      tokens: payload.tokens,
      stop: payload.stop,
      meanLogprob: payload.mean_logprob,
      policyVersion: payload.policy_version,
      seconds: payload.seconds,
      error: payload.error ?? "",
      noProgram: payload.no_program ?? "",
      pieces: payload.pieces ?? [],
    });
    // Shown solved as soon as a node passes; tree.close only confirms it.
    if (node.score === 1) tree.solved = true;
  },
  "node.credit": (state, payload, time, seq) => {
    const node = touchTree(state, payload, seq)?.nodes.get(payload.node);
    if (!node) return;
    Object.assign(node, { shaped: payload.shaped, advantage: payload.advantage });
    for (const name of ["parts", "gates"]) if (name in payload) node[name] = payload[name];
  },
  "tree.close": (state, payload, time, seq) => {
    const tree = touchTree(state, payload, seq);
    if (!tree) return;
    Object.assign(tree, {
      closed: true,
      solved: payload.solved,
      meanScore: payload.mean_score,
      filtered: payload.filtered,
    });
  },
  "agent.update": (state, payload, time, seq) => {
    state.updates.push({ ...payload, time, seq });
  },
  "eval.result": (state, payload, time, seq) => {
    state.evaluations.push({ ...payload, time, seq });
  },
  "checkpoint.saved": (state, payload, time, seq) => {
    state.checkpoints.push({ ...payload, time, seq });
  },
  health: (state, payload, time, seq) => {
    if (payload.state === "opened") {
      state.health.push({ ...payload, time, seq, closed: null });
      return;
    }
    const { rule, agent = "", step, seen } = payload;
    const open = state.health.find((one) => one.rule === rule && (one.agent ?? "") === agent && !one.closed);
    if (open) open.closed = { step, seen, time, seq };
  },
  "search.answer": (state, payload, time, seq) => {
    state.answer = { ...payload, time, seq };
  },
  "system.sample": (state, payload, time, seq) => {
    state.system.push({ ...payload, time, seq });
    if (state.system.length > MAX_SYSTEM_SAMPLES) state.system.shift();
  },
  "log.line": (state, payload, time, seq) => {
    state.logs.push({ ...payload, time, seq });
    if (state.logs.length > MAX_LOG_LINES) state.logs.shift();
  },
  "metric.logged": (state, payload, time, seq) => {
    const { step } = payload;
    Object.assign(state.logged, { step: Math.max(state.logged.step, step), seq });
    for (const kind of LOGGED_KINDS) {
      const newest = state.logged[kind];
      for (const [name, value] of Object.entries(payload[kind] ?? {})) {
        newest.delete(name); // the last ones that were logged come last
        newest.set(name, { value, step, time, seq });
      }
      for (const name of [...newest.keys()].slice(0, -MAX_NAMES)) newest.delete(name);
    }
  },
  error: (state, payload, time, seq) => {
    state.error ??= { ...payload, time, seq };
  },
};

/** Returns a state as plain values: trees and nodes as lists in the order in which they opened. */
export function asJson(state) {
  const trees = [...state.trees.values()].map((tree) => ({
    ...tree,
    nodes: [...tree.nodes.values()],
  }));
  const logged = { ...state.logged };
  for (const kind of LOGGED_KINDS) logged[kind] = Object.fromEntries(logged[kind]);
  return { ...state, trees, logged };
}

function runState(state, payload, time) {
  state.run = { state: payload.state, reason: payload.reason ?? "", since: time };
  if (["queued", "starting", "running"].includes(payload.state)) state.error = null;
  if (["finished", "failed", "stopped"].includes(payload.state)) state.waiting = null;
}

function runResumed(state, payload) {
  const isValid = (item) => item.step <= payload.step;
  state.resumes += 1;
  state.step = Math.min(state.step, payload.step);
  state.steps = state.steps.filter(isValid);
  state.updates = state.updates.filter(isValid);
  state.evaluations = state.evaluations.filter(isValid);
  state.checkpoints = state.checkpoints.filter(isValid);
  state.health = state.health.filter(isValid);
  // A warning that closed in a voided step is open again.
  for (const one of state.health) if (one.closed && !isValid(one.closed)) one.closed = null;
  state.answer = null;
  for (const [id, tree] of state.trees) if (!isValid(tree)) state.trees.delete(id);
  for (const kind of LOGGED_KINDS) {
    for (const [name, one] of state.logged[kind]) if (!isValid(one)) state.logged[kind].delete(name);
  }
  state.waiting = null;
}

function dropOldTrees(state) {
  for (const [id, tree] of state.trees) {
    if (tree.step < state.step - 1) state.trees.delete(id);
  }
}

/** Inserts an item in step order; a step that is reported again replaces its earlier item. */
function putByStep(items, item) {
  const last = items.at(-1);
  if (!last || last.step < item.step) items.push(item);
  else {
    const index = items.findIndex((other) => other.step >= item.step);
    items.splice(index, items[index].step === item.step ? 1 : 0, item);
  }
}

/** Returns the tree of an event and sets its `seq`; undefined if the tree is not kept. */
function touchTree(state, payload, seq) {
  const tree = state.trees.get(payload.tree);
  if (tree) tree.seq = seq;
  return tree;
}

/** Returns the steps whose trees are kept, newest first. */
export function forestSteps(state) {
  return [...new Set([...state.trees.values()].map((tree) => tree.step))].sort((a, b) => b - a);
}

/** Returns the trees of one step in the order in which they opened. */
export function treesOf(state, step) {
  return [...state.trees.values()].filter((tree) => tree.step === step);
}

/** Returns the agents' names in their planned order, which also decides their marks and hues. */
export function agentsOf(state) {
  const names = [...state.plan.agents];
  const more = (name) => names.includes(name) || names.push(name);
  if (!names.length) {
    for (const item of state.evaluations) Object.keys(item.agents).forEach(more);
    for (const tree of state.trees.values()) for (const n of tree.nodes.values()) more(n.agent);
  }
  return names;
}

/** Returns how a node is displayed: open | failure | passed | partial | failed. */
export function outcome(node) {
  if (!node.closed) return "open";
  if (node.score === null || node.score === undefined) return "failure";
  if (node.score >= 1) return "passed";
  return node.fraction > 0 || node.score > 0 ? "partial" : "failed";
}
