/** The team's card: who solved, who repaired whom, whose nodes are on the winning paths. */

import { element } from "../lib/dom.js";
import { count, number, percent } from "../lib/format.js";
import { markIcon } from "../forest/marks.js";
import { allRepairs, repairRatio, teamFigures } from "./team.js";

const PAUSE_FACTOR = 20; // multiple of the figures' cost before they are computed again
let resumeAt = 0;

/** Redraws the card if its figures changed; with many nodes, the check runs less often. */
export function showTeam(host, trees, agents, palette) {
  host.hidden = !trees.some((tree) => tree.nodes.size);
  const began = performance.now();
  if (host.hidden || began < resumeAt) return;
  draw(host, trees, agents, palette);
  const cost = performance.now() - began;
  resumeAt = cost > 2 ? began + (PAUSE_FACTOR + 1) * cost : 0;
}

function draw(host, trees, agents, palette) {
  const figures = teamFigures(trees, agents.map((agent) => agent.name));
  const version = JSON.stringify(figures) + palette.text;
  if (host.dataset.version === version) return;
  host.dataset.version = version;
  const steps = [...new Set(trees.map((tree) => tree.step))].join(" and ");
  const about = `${count(trees.length, "tree")} of step ${steps}, ${figures.solved} solved`;
  host.replaceChildren(
    element(
      "div",
      { class: "card-head" },
      element("h2", { id: "team-title" }, "Team"),
      element("span", { class: "muted small" }, about),
    ),
    element("div", { class: "team" }, solvers(figures, agents, palette), repairTable(figures, agents, palette)),
    element("p", { class: "team-ratio small muted" }, ratioText(allRepairs(figures), figures.fresh)),
  );
}

/** A tree pays where a repair is right more often than a fresh answer. */
function ratioText(repaired, fresh) {
  const counts = `Right: ${repaired.done} of ${count(repaired.tried, "repair")}, ${fresh.done} of ${count(fresh.tried, "fresh answer")}`;
  const found = repairRatio(repaired, fresh);
  if (!found) return `${counts}.`;
  const [ratio, low, high] = [found.ratio, found.low, found.high].map(number);
  return `${counts}: a repair is right ${ratio} times as often (95 % ${low} to ${high}). A tree pays above 1.`;
}

const iconOf = (agent, palette) => markIcon({ ...agent, outcome: "open" }, palette);

function solvers({ agents: rows, solved, pathNodes }, agents, palette) {
  const head = ["Agent", "Nodes", "Passed", "Solved first", "On winning paths"];
  const body = rows.map((row, index) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, element("span", { class: "agent-name" }, iconOf(agents[index], palette), row.name)),
      cell(row.nodes),
      cell(row.passed, row.nodes),
      cell(row.first, solved),
      cell(row.path, pathNodes),
    ),
  );
  return table("Solved by", head, body);
}

function repairTable({ repairs }, agents, palette) {
  const head = ["Repairs by ↓ of →", ...agents.map((agent) => agent.name)];
  const body = agents.map((by) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, element("span", { class: "agent-name" }, iconOf(by, palette), by.name)),
      agents.map((of) => {
        const { tried, done } = repairs[by.name][of.name];
        return cell(done, tried);
      }),
    ),
  );
  return table("Repairs by agent", head, body);
}

function cell(value, of = null) {
  const share = of === null ? "" : of ? ` of ${of}, ${percent(value / of, 0)}` : "";
  return element("td", {}, element("b", {}, String(value)), element("span", { class: "muted" }, share));
}

function table(title, head, body) {
  return element(
    "div",
    { class: "table-wrap", tabindex: 0, role: "group", "aria-label": title },
    element("h3", {}, title),
    element(
      "table",
      { class: "small-table" },
      element("thead", {}, element("tr", {}, head.map((text) => element("th", { scope: "col" }, text)))),
      element("tbody", {}, body),
    ),
  );
}
