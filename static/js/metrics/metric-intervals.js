/**
 * 95 % intervals of Pass@1 over steps, from the standard errors that evaluations report. Pure.
 *
 * An interval is Wilson's at the effective number of problems, n = p (1 - p) / e^2 + 1 for a share p
 * with standard error e (Korn and Graubard 1998). With one answer per problem that is the number of
 * problems, so the interval is the one of Pass@k. Where all problems have the same result, e is 0 and
 * n is the number of problems.
 */

import { wilson } from "./metric-buckets.js";

const OF_AGENTS = /^(validation|test)\.agent\.(.+)$/;
const OF_TEAMS = /^(validation|test)\.(tree|samples)$/;

/** Returns {error, problems}: series behind a metric's interval, error null for a team's; or null. */
export function sourcesOf(metric) {
  const [, split, agent] = OF_AGENTS.exec(metric) ?? OF_TEAMS.exec(metric) ?? [];
  if (!split) return null;
  return { error: OF_AGENTS.test(metric) ? `${split}.error.${agent}` : null, problems: `${split}.problems` };
}

/** Returns [low, high] of a mean share of `problems` with one or more answers; `error` may be null. */
export function pass1Interval(share, error, problems) {
  return wilson(share, error > 0 ? (share * (1 - share)) / error ** 2 + 1 : problems);
}

/**
 * Returns a column of align() with the interval as least and most, and `interval` true; the column
 * itself if the number of problems is unknown. `errors` are standard errors by slot, or null.
 */
export function withInterval(column, errors, problems) {
  if (!problems) return column;
  const intervals = column.mean.map((share, slot) => (share === null ? null : pass1Interval(share, errors?.[slot] ?? null, problems)));
  const edge = (side) => intervals.map((interval) => interval?.[side] ?? null);
  return { ...column, least: edge(0), most: edge(1), interval: true };
}
