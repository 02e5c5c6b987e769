/** The posteriors and draws behind one expansion, level by level, as small densities. */

import { alternatives, curve, meanOf, rangeOf } from "./densities.js";
import { element, svg } from "../lib/dom.js";

const WIDTH = 160;
const HEIGHT = 26;

/** Returns the levels of `node.draws` for display (engine/search/tree.py, Expansion). Pure. */
export function readDraws(draws) {
  return (draws?.levels ?? []).map((level) => {
    const { known: posteriors = {} } = level;
    const groups = [];
    if (level.agents) {
      groups.push(group("Which agent", level.agents, posteriors.agents, level.agent));
    }
    if (level.gen !== undefined && level.cont !== undefined) {
      const winner = level.choice === "gen" ? "new program" : "go deeper";
      const both = { "new program": level.gen, "go deeper": level.cont };
      const bothPosteriors = { "new program": posteriors.gen, "go deeper": posteriors.cont };
      groups.push({ ...group("Widen or deepen", both, bothPosteriors, winner), weight: level.weight ?? null });
    }
    if (level.children) {
      const name = ([id, value]) => [`node ${id}`, value];
      const named = (values) => Object.fromEntries(Object.entries(values ?? {}).map(name));
      const winner = `node ${level.choice}`;
      groups.push(group("Which child", named(level.children), named(posteriors.children), winner));
    }
    return { at: level.node === 0 ? "At the problem" : `At node ${level.node}`, groups };
  });
}

function group(title, draws, posteriors, winner) {
  // An agent that UCB must try first has an infinite bound, which no event can hold.
  const names = [...new Set([...Object.keys(draws), ...Object.keys(posteriors ?? {})])];
  const arms = names.map((name) => ({
    name,
    draw: draws[name] ?? null,
    posterior: posteriors?.[name] ?? null,
    won: name === winner,
  }));
  return { title, arms, other: alternatives(arms), weight: null };
}

/** Returns the panel's section; "" for a node without a choice. */
export function thompsonSection(node) {
  const levels = readDraws(node.draws).filter((level) => level.groups.length);
  if (!levels.length) return "";
  const hasPosteriors = levels.some((level) => level.groups.some((one) => one.other));
  const key = hasPosteriors
    ? "Curve: the posterior. Dot: its mean. Line: the draw; the largest wins."
    : "Line: the draw; the largest wins. This log does not record the posteriors.";
  return element(
    "section",
    {},
    element("h3", {}, "Selection"),
    element("p", { class: "small muted" }, key),
    ...levels.map(({ at, groups }) =>
      element("div", { class: "draws" }, element("p", { class: "small muted" }, at), ...groups.map(groupRows)),
    ),
  );
}

function groupRows({ title, arms, other, weight }) {
  const range = rangeOf(arms);
  const curves = arms.map((arm) => curve(arm.posterior, range));
  // A Beta with a or b below 1 is infinite at an end: the ends do not set the scale.
  const most = Math.max(1e-9, ...curves.flatMap((points) => points.slice(3, -3).map(([, y]) => y)));
  const rows = arms.map((arm, index) => {
    const { name, draw, won } = arm;
    return element(
      "div",
      { class: won ? "draw won" : "draw" },
      element("span", {}, won ? `▸ ${name}` : name),
      picture(arm, curves[index], range, most),
      element("span", { class: "right" }, draw === null ? "first" : draw.toFixed(2)),
    );
  });
  return element(
    "div",
    { class: "draw-group", role: "group", "aria-label": title },
    element("h4", {}, title),
    ...rows,
    weight === null ? "" : element("p", { class: "small muted" }, `The draw of “new program” is weighted by ${weight} for its depth.`),
    other ? otherRules(arms, other) : "",
  );
}

function otherRules(arms, other) {
  const won = arms.find((arm) => arm.won)?.name;
  const rule = (name, choice) =>
    element(
      "span",
      { class: choice === won ? "rule" : "rule differs" },
      `by ${name}: `,
      element("b", {}, choice),
      choice === won ? "" : " (differs)",
    );
  return element("p", { class: "small muted rules" }, rule("mean", other.mean), rule("UCB", other.ucb));
}

function picture(arm, points, [from, to], most) {
  const x = (value) => (WIDTH * (value - from)) / (to - from);
  const y = (value) => HEIGHT - 2 - (HEIGHT - 5) * Math.min(1, value / most);
  const parts = [svg("line", { class: "base", x1: 0, x2: WIDTH, y1: HEIGHT - 2, y2: HEIGHT - 2 })];
  if (points.length) {
    const path = points.map(([at, value]) => `L${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    parts.push(svg("path", { class: "area", d: `M0 ${HEIGHT - 2}${path}L${WIDTH} ${HEIGHT - 2}Z` }));
  }
  const mean = meanOf(arm.posterior);
  if (mean !== null) parts.push(svg("path", { class: "mean", d: `M${x(mean)} ${HEIGHT - 2}h0.01` }));
  if (arm.draw !== null) {
    parts.push(svg("line", { class: "pick", x1: x(arm.draw), x2: x(arm.draw), y1: 1, y2: HEIGHT - 1 }));
  }
  const label = [
    mean === null ? null : `mean ${mean.toFixed(2)}`,
    arm.draw === null ? null : `draw ${arm.draw.toFixed(2)}`,
  ].filter(Boolean);
  return svg(
    "svg",
    {
      class: "density",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `${arm.name}: ${label.join(", ")}`,
    },
    ...parts,
  );
}
