/** Why here: the Thompson draws behind one expansion, level by level, as bars. */

import { element } from "./dom.js";

/** Readable levels of `node.draws` (engine/search/tree.py, Expansion). Pure. */
export function readDraws(draws) {
  return (draws?.levels ?? []).map((level) => {
    const groups = [];
    if (level.agents) groups.push({ title: "which agent", arms: arms(level.agents, level.agent) });
    if (level.gen !== undefined && level.cont !== undefined) {
      const winner = level.choice === "gen" ? "new program" : "go deeper";
      const both = { "new program": level.gen, "go deeper": level.cont };
      groups.push({ title: "widen or deepen", arms: arms(both, winner) });
    }
    if (level.children) {
      const named = Object.entries(level.children).map(([id, draw]) => [`node ${id}`, draw]);
      groups.push({
        title: "which child",
        arms: arms(Object.fromEntries(named), `node ${level.choice}`),
      });
    }
    return { at: level.node === 0 ? "At the problem" : `At node ${level.node}`, groups };
  });
}

function arms(values, winner) {
  return Object.entries(values).map(([name, draw]) => ({ name, draw, won: name === winner }));
}

export function thompsonSection(node) {
  const levels = readDraws(node.draws).filter((level) => level.groups.length);
  if (!levels.length) return "";
  return element(
    "section",
    {},
    element("h3", {}, "Why here: Thompson draws"),
    ...levels.map(({ at, groups }) =>
      element("div", { class: "draws" }, element("p", { class: "small muted" }, at), ...groups.map(bars)),
    ),
  );
}

function bars({ title, arms }) {
  const most = Math.max(1, ...arms.map((arm) => arm.draw));
  const least = Math.min(0, ...arms.map((arm) => arm.draw));
  const rows = arms.map(({ name, draw, won }) => {
    const fill = element("span", { class: "bar-fill" });
    fill.style.width = `${(100 * (draw - least)) / (most - least)}%`;
    return element(
      "div",
      { class: won ? "draw won" : "draw" },
      element("span", {}, won ? `▸ ${name}` : name),
      element("span", { class: "bar", "aria-hidden": "true" }, fill),
      element("span", { class: "right" }, draw.toFixed(2)),
    );
  });
  return element("div", { class: "draw-group", role: "group", "aria-label": title }, rows);
}
