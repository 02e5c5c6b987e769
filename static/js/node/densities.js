/**
 * Posteriors of the search as curves, and the choices of rules other than Thompson's. Pure.
 *
 * A posterior is what an event records of an arm (engine/search/tree.py): {a, b} of a Beta posterior,
 * {m, kappa, nu, tau_square} of a Gaussian one (Student's t once its variance is integrated out),
 * or {mean, nodes} where UCB1 chose.
 */

const PRIOR = 0.5; // Jeffreys' a and b, engine/search/posteriors.py

// Lanczos' approximation, g = 7: good to 15 digits.
const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
  -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
  1.5056327351493116e-7,
];

/** Returns ln Γ(x) for x > 0. */
export function logGamma(x) {
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  const y = x - 1;
  const t = y + 7.5;
  let sum = LANCZOS[0];
  for (let i = 1; i < LANCZOS.length; i += 1) sum += LANCZOS[i] / (y + i);
  return 0.5 * Math.log(2 * Math.PI) + (y + 0.5) * Math.log(t) - t + Math.log(sum);
}

/** Returns the density of an arm's posterior at x; null if none is known. */
export function density(posterior, x) {
  if (posterior?.a !== undefined) {
    const { a, b } = posterior;
    if (x <= 0 || x >= 1) return 0;
    const log = logGamma(a + b) - logGamma(a) - logGamma(b);
    return Math.exp(log + (a - 1) * Math.log(x) + (b - 1) * Math.log(1 - x));
  }
  if (posterior?.nu !== undefined) {
    const { m, kappa, nu, tau_square: tau } = posterior;
    const scale = Math.sqrt(tau / kappa);
    const z = (x - m) / scale;
    const log = logGamma((nu + 1) / 2) - logGamma(nu / 2) - 0.5 * Math.log(nu * Math.PI);
    return Math.exp(log - ((nu + 1) / 2) * Math.log(1 + (z * z) / nu)) / scale;
  }
  return null;
}

/** Returns [[x, density]] at the middles of `points` equal parts of a range; [] if none is known. */
export function curve(posterior, [from, to] = [0, 1], points = 64) {
  if (density(posterior, (from + to) / 2) === null) return [];
  return Array.from({ length: points }, (_, index) => {
    const x = from + ((index + 0.5) / points) * (to - from);
    return [x, density(posterior, x)];
  });
}

/** Returns the posterior's mean; null if nothing is known. */
export function meanOf(posterior) {
  if (posterior?.a !== undefined) return posterior.a / (posterior.a + posterior.b);
  return posterior?.m ?? posterior?.mean ?? null;
}

/** Returns {nodes, mean} of the rewards that an arm has received, without its prior. */
export function observedRewards(posterior) {
  if (posterior?.a !== undefined) {
    const nodes = posterior.a + posterior.b - 2 * PRIOR;
    return { nodes, mean: nodes > 0 ? (posterior.a - PRIOR) / nodes : 0 };
  }
  if (posterior?.kappa !== undefined) {
    const nodes = posterior.kappa - 1; // kappa0 = 1, m0 = 0
    return { nodes, mean: nodes > 0 ? (posterior.kappa * posterior.m) / nodes : 0 };
  }
  return { nodes: posterior?.nodes ?? 0, mean: posterior?.mean ?? 0 };
}

/** Returns UCB1 (Auer et al. 2002) of every arm: mean + sqrt(2 ln N / n), infinite without a node. */
export function upperBounds(arms) {
  const observed = arms.map((arm) => observedRewards(arm.posterior));
  const total = observed.reduce((sum, { nodes }) => sum + nodes, 0);
  return observed.map(({ nodes, mean }) =>
    nodes > 1e-9 ? mean + Math.sqrt((2 * Math.log(Math.max(1, total))) / nodes) : Infinity,
  );
}

/** Returns {mean, ucb}: the arm that each rule would choose; null if the log records too little. */
export function alternatives(arms) {
  if (arms.length < 2 || arms.some((arm) => meanOf(arm.posterior) === null)) return null;
  const first = (values) => arms[values.indexOf(Math.max(...values))].name;
  return { mean: first(arms.map((arm) => meanOf(arm.posterior))), ucb: first(upperBounds(arms)) };
}

/** Returns the range of x for these arms: 0 to 1, extended to draws or means outside. */
export function rangeOf(arms) {
  const values = arms.flatMap((arm) => [arm.draw, meanOf(arm.posterior)]);
  const finite = values.filter((value) => Number.isFinite(value));
  return [Math.min(0, ...finite), Math.max(1, ...finite)];
}
