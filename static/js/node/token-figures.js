/** Figures of single tokens: probability, entropy, importance ratio. Pure. */

import { number } from "../lib/format.js";

const level = (bounds) => (value) => {
  const index = bounds.findIndex((least) => value <= least);
  return index < 0 ? bounds.length : index;
};

/** Figures by token: the button's label, shade 0 (none) to 4 (darkest) of a value, and a hint. */
export const COLUMNS = [
  {
    name: "logprobs",
    label: "Log-prob",
    hint: "Darker is less probable.",
    shade: (logprob) => level([0.1, 0.4, 0.7, 0.9])(1 - Math.exp(logprob)),
  },
  { name: "entropy", label: "Entropy", hint: "Darker is less certain.", shade: level([0.05, 0.3, 0.8, 1.5]) },
  {
    name: "ratio",
    label: "Ratio",
    hint: "Darker is further from 1.",
    shade: (ratio) => level([0.02, 0.1, 0.2, 0.5])(Math.abs(Math.log(Math.max(ratio, 1e-9)))),
  },
];

export function columnOf(name) {
  return COLUMNS.find((column) => column.name === name);
}

/** Formats the range of values: "From 0.1 to 2."; those that were not measured are null. */
export function bounds(all) {
  const values = all.filter((value) => value !== null);
  if (!values.length) return "";
  const [least, most] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  return `From ${number(least)} to ${number(most)}.`;
}

/** Describes one token in one line. */
export function readOf({ tokens, logprobs, entropy, ratio }, index) {
  const logprob = logprobs[index] ?? null;
  const p = logprob === null ? null : Math.exp(logprob);
  const parts = [
    `${index + 1} of ${tokens.length}: ${JSON.stringify(tokens[index])}`,
    `log-prob ${number(logprob)}`,
    `p = ${p === null ? "–" : p.toPrecision(2)}`,
  ];
  if (entropy[index] !== undefined) parts.push(`entropy ${number(entropy[index])}`, `ratio ${number(ratio[index])}`);
  return parts.join(", ");
}
