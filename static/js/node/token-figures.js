/** Figures of single tokens: probability, entropy, importance ratio. Pure. */

import { number } from "../lib/format.js";

const level = (bounds) => (value) => {
  const place = bounds.findIndex((least) => value <= least);
  return place < 0 ? bounds.length : place;
};

/** Figures by token: the button's label, shade 0 (none) to 4 (darkest) of a value, and a hint. */
export const COLUMNS = [
  {
    name: "logprobs",
    label: "Log-prob",
    hint: "The darker, the less probable.",
    shade: (logprob) => level([0.1, 0.4, 0.7, 0.9])(1 - Math.exp(logprob)),
  },
  { name: "entropy", label: "Entropy", hint: "The darker, the more open the choice.", shade: level([0.05, 0.3, 0.8, 1.5]) },
  {
    name: "ratio",
    label: "Ratio",
    hint: "The darker, the further from 1.",
    shade: (ratio) => level([0.02, 0.1, 0.2, 0.5])(Math.abs(Math.log(Math.max(ratio, 1e-9)))),
  },
];

export function columnOf(name) {
  return COLUMNS.find((column) => column.name === name);
}

/** Formats the range of values: "From 0.1 to 2." */
export function bounds(values) {
  if (!values.length) return "";
  const [least, most] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  return `From ${number(least)} to ${number(most)}.`;
}

/** Describes one token in one line. */
export function readOf({ tokens, logprobs, entropy, ratio }, place) {
  const p = Math.exp(logprobs[place]);
  const parts = [
    `${place + 1} of ${tokens.length}: ${JSON.stringify(tokens[place])}`,
    `log-prob ${number(logprobs[place])}`,
    `p = ${p.toPrecision(2)}`,
  ];
  if (entropy[place] !== undefined) parts.push(`entropy ${number(entropy[place])}`, `ratio ${number(ratio[place])}`);
  return parts.join(", ");
}
