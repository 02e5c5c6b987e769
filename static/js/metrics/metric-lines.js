/**
 * The lines of a chart from aligned buckets: their labels and looks, seeds combined, parts stacked.
 * Pure.
 *
 * A line is {label, part, token, dash, mean, least, most, count, interval}; `token` names a colour of
 * the page, `interval` says that least and most are a 95 % interval.
 */

import { band, smoothed } from "./metric-buckets.js";

const TEAM = "--line-team";
const RUNS = ["--agent-1", "--agent-2", "--agent-3", "--phase-2", "--agent-5", "--agent-6", "--phase-3", "--agent-4"];
const WHOLES = ["share", "phase", "ends", "stops"];

/** Returns whether the lines of a chart are stacked: they are the parts of one run's whole. */
export function isStacked(id, runs, view) {
  return WHOLES.includes(id) && runs.size === 1 && !view.logY;
}

/** Returns one line per series or, with a band, one for all seeds of runs with the same settings. */
export function linesOf(chart, columns, view, runs) {
  const parts = [...new Set(chart.lines.map((line) => line.part))];
  const perSeries = chart.lines.map((line, index) => {
    const run = runs.get(line.run);
    const label = [runs.size > 1 ? run.label : "", line.label].filter(Boolean).join(" · ");
    const column = columns[index];
    const mean = smoothed(column.mean, view.smooth);
    // An interval is about its mean, so it is smoothed too; least and greatest of a bucket are not.
    const edges = column.interval
      ? { least: smoothed(column.least, view.smooth), most: smoothed(column.most, view.smooth) }
      : {};
    return { run, part: line.part, label: label || "all", ...column, ...edges, mean };
  });
  const groupOf = ({ run }) => (view.band === "none" ? run.id : run.group);
  const ids = [...new Set([...runs.values()].map((run) => groupOf({ run })))];
  const stacked = isStacked(chart.id, runs, view);
  return [...grouped(perSeries, (line) => `${groupOf(line)} ${line.part}`).values()].map((lines) => {
    const [{ run, part }] = lines;
    const look = ids.length > 1
      ? lookOfRun(ids.indexOf(groupOf(lines[0])), parts, part)
      : lookOf(run, part, parts, stacked);
    if (lines.length === 1 || view.band === "none") return { ...lines[0], ...look };
    // The settings that an experiment varies distinguish its groups of seeds.
    const seeds = [run.name, run.variant, `${lines.length} seeds`].filter(Boolean).join(", ");
    const label = [seeds, part].filter(Boolean).join(" · ");
    const interval = view.band === "ci" && lines.every((line) => line.interval);
    return { run, part, label, ...look, interval, ...band(lines, view.band) };
  });
}

/** A run has a colour; the dash distinguishes its lines or, if it has only one, the run once more. */
function lookOfRun(index, parts, part) {
  return { token: RUNS[index % RUNS.length], dash: parts.length > 1 ? parts.indexOf(part) : index };
}

/** An agent looks as in the trees and also has a dash: colour alone never distinguishes it. */
function lookOf(run, part, parts, stacked) {
  const agent = run.agents.indexOf(part);
  if (agent >= 0) return { token: `--agent-${(agent % 6) + 1}`, dash: agent };
  if (stacked) return { token: `--phase-${(parts.indexOf(part) % 8) + 1}`, dash: 0 };
  const others = parts.filter((one) => !run.agents.includes(one));
  if (run.agents.some((name) => parts.includes(name)) || !part) return { token: TEAM, dash: others.indexOf(part) };
  return { token: RUNS[others.indexOf(part) % RUNS.length], dash: 0 };
}

function grouped(items, keyOf) {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

/**
 * Returns cumulative sums of means, the last line on top, as a stacked chart draws them; null where a
 * part has a gap, whose whole nobody knows.
 */
export function stack(lines) {
  const sums = [];
  const isGap = (slot) => lines.some(({ gap }) => gap?.[slot]);
  return lines.map(({ mean }) =>
    mean.map((value, slot) => (isGap(slot) ? null : (sums[slot] = (sums[slot] ?? 0) + (value ?? 0)))),
  );
}

/**
 * Returns values as uPlot draws a line: null between two values if a gap lies there, which ends the
 * line; else undefined where there is no value, as where only another line has a point.
 */
export function interrupted(values, gap) {
  const drawn = values.map((value) => value ?? undefined);
  let first = 0;
  values.forEach((value, slot) => {
    if (value === null) return;
    if (first < slot && gap?.slice(first, slot).includes(true)) drawn.fill(null, first, slot);
    first = slot + 1;
  });
  return drawn;
}

/** Returns the slots of values without a neighbour to which a line could lead; null if there are none. */
export function lonely(drawn) {
  const slots = drawn.flatMap((value, slot) => (value === null || value === undefined ? [] : [slot]));
  const isBroken = (first, after) => after !== undefined && first !== undefined && drawn.slice(first, after).includes(null);
  const isEnd = (first, after) => first === undefined || after === undefined || isBroken(first, after);
  const alone = slots.filter((slot, index) => isEnd(slots[index - 1], slot) && isEnd(slot, slots[index + 1]));
  return alone.length ? alone : null;
}
