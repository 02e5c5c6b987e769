/** The legend of marks, fills and lines of the trees, for the chosen colours. */

import { element } from "../lib/dom.js";
import { markIcon } from "./marks.js";
import { creditFill } from "../node/node-look.js";
import { edgeIcon } from "./tree-paint.js";

const SCORES = [
  ["passed", "passed"],
  ["partial", "some tests"],
  ["failed", "failed"],
  ["failure", "sandbox failure"],
];
const ADVANTAGES = [-2, -0.7, 0, 0.7, 2];

/** @param colour what fills show: "score", "advantage" or "agent". */
export function drawLegend(host, agents, palette, colour) {
  const version = [...agents.map((agent) => agent.name), palette.text, colour].join();
  if (host.dataset.version === version) return;
  host.dataset.version = version;
  const entry = (icon, text) => element("span", {}, icon, text);
  const circle = { shape: "circle", hue: palette.muted, fraction: 0.5 };
  const score = ([outcome, text]) => entry(markIcon({ ...circle, outcome }, palette), text);
  const credit = (advantage) => {
    const look = { ...circle, outcome: "passed", ...creditFill(advantage, palette) };
    const sign = advantage > 0 ? "+" : "\u2212";
    return entry(markIcon(look, palette), advantage ? `${sign}${Math.abs(advantage)}` : "advantage 0");
  };
  const fills = { score: SCORES.map(score), advantage: ADVANTAGES.map(credit), agent: [] };
  host.replaceChildren(
    ...agents.map((agent) => entry(markIcon({ ...agent, outcome: "open" }, palette), agent.name)),
    ...fills[colour],
    entry(edgeIcon(false, palette), "generation"),
    entry(edgeIcon(true, palette), "refinement"),
  );
}
