/**
 * Numbers of charts, from the buckets that `GET /runs/ID/metrics/NAME` returns: columns of a plot,
 * means of seeds, smoothing, intervals. Pure.
 */

import { t95, Z95 } from "./student.js";

/**
 * Returns the columns of a plot: {x, columns: [{mean, least, most, count, gap}]}, one column per series.
 *
 * Slots are those buckets in which any series has a point or a gap. x of a slot lies within it, where
 * its points are; a column is null where a series has none. `gap` says of a slot whether the series
 * reported that it has no value there, so that its line ends.
 */
export function align(series, { from, to, points, log = false }) {
  const slots = [...new Set(series.flatMap(({ buckets, gaps }) => [...buckets.at, ...(gaps?.at ?? [])]))].sort((a, b) => a - b);
  const slotOf = new Map(slots.map((at, index) => [at, index]));
  const sums = slots.map(() => [0, 0]);
  const columns = series.map(({ buckets, gaps }) => {
    const column = { mean: [], least: [], most: [], count: [] };
    for (const values of Object.values(column)) values.push(...slots.map(() => null));
    column.gap = slots.map(() => false);
    gaps?.at.forEach((at, index) => {
      const slot = slotOf.get(at);
      column.gap[slot] = true;
      sums[slot][0] += gaps.x[index];
      sums[slot][1] += 1;
    });
    buckets.at.forEach((at, index) => {
      const slot = slotOf.get(at);
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

/** Exponential moving average, corrected for its start; gaps stay gaps. `weight` in [0, 1). */
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
 * Combines runs: {mean, least, most, count} where at least one has a value; count is of runs.
 * `columns` are {mean, least, most, interval}; `kind` is "std" (sample deviation) or "ci" (95 % of the
 * mean, Student's t). Where a single run has a value it keeps its own interval, if it has one.
 */
export function band(columns, kind) {
  const length = columns[0]?.mean.length ?? 0;
  const combined = { mean: [], least: [], most: [], count: [], gap: [] };
  for (let slot = 0; slot < length; slot += 1) {
    const present = columns.filter((column) => column.mean[slot] !== null);
    const values = present.map((column) => column.mean[slot]);
    const n = values.length;
    combined.gap.push(!n && columns.some((column) => column.gap?.[slot] ?? false));
    if (n === 1 && kind === "ci" && present[0].interval) {
      for (const name of ["mean", "least", "most"]) combined[name].push(present[0][name][slot]);
      combined.count.push(1);
      continue;
    }
    const mean = n ? values.reduce((sum, value) => sum + value, 0) / n : null;
    const spread = n > 1 ? Math.sqrt(values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (n - 1)) : 0;
    const reach = kind === "ci" && n > 1 ? (spread * t95(n - 1)) / Math.sqrt(n) : spread;
    combined.mean.push(mean);
    combined.least.push(n ? mean - reach : null);
    combined.most.push(n ? mean + reach : null);
    combined.count.push(n || null);
  }
  return combined;
}

/** Wilson's 95 % interval of a share of n. */
export function wilson(share, n) {
  if (!n) return [0, 1];
  const z = Z95;
  const middle = (share + (z * z) / (2 * n)) / (1 + (z * z) / n);
  const reach = (z * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n))) / (1 + (z * z) / n);
  return [Math.max(0, middle - reach), Math.min(1, middle + reach)];
}

/**
 * Results over the budget of nodes, at the newest step: [{k, best, within, low, high}], with the
 * interval of `within` over the trees of that step; empty before a step has ended. `metrics` are of
 * one run.
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
