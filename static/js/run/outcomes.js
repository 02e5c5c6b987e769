/** Results of a run so far, from a state of the fold. Pure. */

/** Returns first and last result of the test split, {before, after}; null before both exist. */
export function result(state) {
  const tests = merged(state.evaluations.filter((item) => item.split === "test"));
  return tests.length < 2 ? null : { before: tests[0], after: tests.at(-1) };
}

/** Returns the figures of a test result by family of problem, before and after training:
 *  [{family, problems, figures: [{name, before, after}]}]; empty where there is one family. */
export function familyFigures({ before, after }, agents) {
  return Object.entries(after.families ?? {}).map(([family, now]) => {
    const first = before.families?.[family] ?? { agents: {} };
    const figures = agents.map((name) => ({ name, before: first.agents[name] ?? null, after: now.agents[name] ?? null }));
    for (const [name, key] of [["tree", "tree"], ["samples", "samples"]]) {
      if (typeof now[key] === "number") figures.push({ name, before: first[key] ?? null, after: now[key] });
    }
    return { family, problems: now.problems, figures };
  });
}

/** Returns first and newest validation result per agent: [{agent, before, now}]. */
export function validationChange(state, agents) {
  const rows = merged(state.evaluations.filter((item) => item.split === "validation"));
  return agents.map((agent) => ({
    agent,
    before: rows[0]?.agents[agent] ?? null,
    now: rows.at(-1)?.agents[agent] ?? null,
  }));
}

/** Returns the checkpoint with the highest mean validation so far, which the run keeps; or null. */
export function bestCheckpoint(state) {
  return state.checkpoints.findLast((one) => one.best) ?? null;
}

/** Returns one row per step: the later result of a step wins. */
function merged(rows) {
  const byStep = new Map(rows.map((row) => [row.step, row]));
  return [...byStep.values()].sort((a, b) => a.step - b.step);
}
