/**
 * Alert bands of the charts: values of training metrics that deserve attention. Pure.
 *
 * Rules of thumb of policy-gradient training on language models, not laws: a band marks values at
 * which runs often failed later, and says why.
 */

/** By chart: {below?, above?, why}; a value outside is an alert. */
export const ALERTS = {
  entropy: { below: 0.05, why: "Below 0.05 nats, the policy hardly explores" },
  kl: { above: 1, why: "Above 1 nat, the policy is far from its starting weights" },
  clip_fraction: { above: 0.3, why: "Above 30 %, clipping removes much of the gradient" },
  mismatch: { above: 0.1, why: "Above 0.1 nats, generator and learner disagree" },
  lag: { above: 4, why: "Above 4 versions, training data is stale" },
  "step.filtered_share": { above: 0.8, why: "Above 80 %, few trees have a learning signal: problems are too easy or too hard" },
  gradient_norm: { above: 20, why: "Above 20, updates may be unstable" },
  "search.duplicates": { above: 0.5, why: "Above 50 %, most programs repeat earlier ones" },
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
