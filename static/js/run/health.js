/**
 * Alert bands of the charts: values of training metrics that deserve attention. Pure.
 *
 * Rules of thumb of policy-gradient training on language models, not laws: a band marks values at
 * which runs often failed later, and says why.
 */

/** By chart: {below?, above?, why}; a value outside is an alert. */
export const ALERTS = {
  entropy: { below: 0.05, why: "below 0.05 nats the policy hardly explores any more" },
  kl: { above: 1, why: "above 1 nat the policy has left the weights it started from far behind" },
  clip_fraction: { above: 0.3, why: "above 30 % most of what is learned is cut off by the clip" },
  mismatch: { above: 0.1, why: "above 0.1 nats the generator is not the policy that learns" },
  lag: { above: 4, why: "above 4 versions what is learned from is old" },
  "step.filtered_share": { above: 0.8, why: "above 80 % a step learns from few of its trees: problems are too easy or too hard" },
  gradient_norm: { above: 20, why: "above 20 a step may undo what was learned" },
  "search.duplicates": { above: 0.5, why: "above 50 % most of the search writes what it had" },
};

/** Returns the lines whose newest value is outside, of lines {label, values}: {label, value, why}. */
export function alerts(id, lines) {
  const rule = ALERTS[id];
  if (!rule) return [];
  return lines
    .map(({ label, values }) => ({ label, value: values.findLast((value) => value !== null) ?? null, why: rule.why }))
    .filter(({ value }) => value !== null && isOutside(rule, value));
}

function isOutside({ below, above }, value) {
  return (below !== undefined && value < below) || (above !== undefined && value > above);
}
