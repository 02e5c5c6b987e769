/** Progress of a run and an estimate of the time left. Pure: the clock is an argument. */

const RECENT = 10; // newest steps used for an estimate

/**
 * @returns {done, steps, share, byMinutes, minutesDone, minutes, secondsLeft|null}: `share` runs from
 *   0 to 1 over whichever limit is nearer, `byMinutes` says that it is the minutes; `secondsLeft` is
 *   null until a step has ended.
 */
export function progressOf(state) {
  const last = state.steps.at(-1);
  const done = last?.step ?? 0;
  const { steps, minutes } = state.plan;
  const minutesDone = trainingSeconds(state) / 60;
  const bySteps = steps ? done / steps : 0;
  const byTime = minutes ? minutesDone / minutes : 0;
  return {
    done,
    steps,
    minutes,
    minutesDone: minutes ? Math.min(minutes, minutesDone) : minutesDone, // steps may exceed it
    byMinutes: minutes !== null && byTime > bySteps,
    share: Math.min(1, Math.max(bySteps, byTime)),
    secondsLeft: secondsLeft(state),
  };
}

function secondsLeft(state) {
  const recent = state.steps.slice(-RECENT);
  if (!recent.length) return null;
  const wall = wallSecondsPerStep(recent);
  if (!Number.isFinite(wall)) return null;
  const last = recent.at(-1);
  const limits = [];
  if (state.plan.steps) limits.push((state.plan.steps - last.step) * wall);
  if (state.plan.minutes) {
    const training = mean(recent.map((step) => step.seconds)) || wall;
    const left = state.plan.minutes * 60 - trainingSeconds(state);
    limits.push(Math.max(0, left) * Math.max(1, wall / training));
  }
  return limits.length ? Math.min(...limits) : null;
}

/** Returns seconds from one step's end to the next, which include validation and checkpoints. */
function wallSecondsPerStep(recent) {
  if (recent.length < 2) return recent[0].seconds;
  const span = (recent.at(-1).time - recent[0].time) / 1000;
  const steps = recent.at(-1).step - recent[0].step;
  return span > 0 && steps > 0 ? span / steps : mean(recent.map((step) => step.seconds));
}

/** Seconds of training so far; an external engine may not have measured those of the last steps. */
function trainingSeconds(state) {
  return state.steps.findLast((step) => Number.isFinite(step.training_seconds))?.training_seconds ?? 0;
}

/** Returns the mean of the values that are known; NaN if none is. */
function mean(values) {
  const known = values.filter(Number.isFinite);
  return known.reduce((sum, value) => sum + value, 0) / known.length;
}

/** Returns the current phase of the run, in a few words. */
export function phaseOf(state) {
  if (!state.step) return state.plan.steps ? "first validation" : "starting";
  const trees = [...state.trees.values()].filter((tree) => tree.step === state.step);
  if (trees.some((tree) => !tree.closed)) return "growing trees";
  const ended = state.steps.at(-1)?.step === state.step;
  if (ended) return progressOf(state).share >= 1 ? "final test" : "between steps";
  return trees.length ? "updating agents" : "opening trees";
}

/** Returns {nodes, tokens} of all steps that ended; null if one of them is not known. */
export function totals(state) {
  const sum = (field) =>
    state.steps.every((step) => Number.isFinite(step[field])) ? state.steps.reduce((all, step) => all + step[field], 0) : null;
  return { nodes: sum("nodes"), tokens: sum("tokens") };
}
