/**
 * The run page: the stream feeds the fold, and everything on the page is drawn from the fold.
 *
 * What the server knows beside the log (queued, stopping, who holds the run) comes with `status`
 * frames; the log never waits for it.
 */

import { Charts } from "./charts.js";
import { element, setText } from "./dom.js";
import { agentsOf, emptyState, fold, forestSteps, treeOfNode } from "./fold.js";
import { edgeIcon, lookup } from "./forest-paint.js";
import { Forest } from "./forest.js";
import { clock } from "./format.js";
import { markIcon, markOf, readPalette } from "./marks.js";
import { NodePanel } from "./node-panel.js";
import { hasEnded, Progress } from "./progress.js";
import { chartsOf } from "./series.js";
import { browser, connectionNote, RunStream, statusText, TOPICS } from "./stream.js";
import { Twin } from "./twin.js";

const part = (name) => document.querySelector(`[data-part="${name}"]`);
const page = JSON.parse(document.getElementById("page").textContent);

const treesToCome = part("noTreesText").textContent;
let state = emptyState();
let status = page.status;
let streamStatus = { kind: "connecting" };
let palette = readPalette();
let drawing = false;
let chartsVersion = "";
let deepLink = readHash();

const forest = new Forest({
  stage: part("stage"),
  canvas: part("canvas"),
  tip: part("tip"),
  onSelect: selected,
  onFocus: focused,
});
const panel = new NodePanel(part("panel"), {
  close: () => forest.setFocus(forest.focus, null),
  pick: (tree, node) => forest.setFocus(tree, node),
  collapse: () => {},
  load: (tree, node) => browser.load(nodeAddress(tree, node)),
});
const charts = new Charts(part("charts"));
const twin = new Twin(part("twin"), (tree, node) => forest.setFocus(tree, node));
const progress = new Progress(
  Object.fromEntries(
    ["pill", "stop", "stopButton", "resume", "bar", "facts", "notes", "figures", "result"].map(
      (name) => [name, part(name)],
    ),
  ),
  page,
);

/** The team in its order, with the look of each agent. */
function team() {
  const names = page.agents.map((agent) => agent.name);
  for (const name of agentsOf(state)) if (!names.includes(name)) names.push(name);
  return names.map((name, position) => {
    const { shape, hue } = markOf(position);
    return { name, position, shape, hue: palette.agents[position % palette.agents.length], token: hue };
  });
}

function changed() {
  if (drawing) return;
  drawing = true;
  // A hidden tab gets no animation frames; its state is folded all the same and drawn on return.
  requestAnimationFrame(() => {
    drawing = false;
    draw();
  });
}

function draw() {
  const agents = team();
  const names = agents.map((agent) => agent.name);
  const now = Date.now();
  progress.show(state, status, agents, palette, now, connectionNote(streamStatus, now, clock));
  followDeepLink();
  forest.show(state, agents);
  drawForestHead(agents);
  drawPanel();
  const last = state.steps.at(-1);
  const version = [last?.step, state.updates.length, state.evaluations.length, state.resumes].join();
  if (version !== chartsVersion) {
    chartsVersion = version;
    charts.show(chartsOf(state, names), agents);
  }
  drawLog();
  drawStream();
}

function drawForestHead(agents) {
  const steps = forestSteps(state);
  const buttons = [part("current"), part("previous")];
  buttons.forEach((button, index) => {
    const step = steps[index];
    button.disabled = step === undefined;
    setText(button, step === undefined ? ["Newest step", "Step before"][index] : `Step ${step}`);
    const shown = forest.trees[0]?.step;
    button.setAttribute("aria-pressed", String(step !== undefined && step === shown));
  });
  const solved = forest.trees.filter((tree) => tree.solved).length;
  const text = forest.trees.length ? `${solved} of ${forest.trees.length} solved` : "";
  setText(part("solved"), text);
  part("noTrees").hidden = forest.trees.length > 0 || Boolean(forest.focus);
  part("stage").hidden = !part("noTrees").hidden;
  const ended = "The run was over before its first step.";
  setText(part("noTreesText"), hasEnded(status.state) ? ended : treesToCome);
  twin.show(state.seq, forest.trees, forest.focus, forest.selected);
  drawLegend(agents);
}

function drawLegend(agents) {
  const host = part("legend");
  const said = agents.map((agent) => agent.name).join() + palette.text;
  if (host.dataset.said === said) return;
  host.dataset.said = said;
  const entry = (icon, text) => element("span", {}, icon, text);
  const score = (outcome, text) =>
    entry(markIcon({ shape: "circle", hue: palette.muted, outcome, fraction: 0.5 }, palette), text);
  host.replaceChildren(
    ...agents.map((agent) => entry(markIcon({ ...agent, outcome: "open" }, palette), agent.name)),
    score("passed", "passed"),
    score("partial", "some tests"),
    score("failed", "failed"),
    score("failure", "sandbox failure"),
    entry(edgeIcon(false, palette), "generation"),
    entry(edgeIcon(true, palette), "refinement"),
  );
}

function drawPanel() {
  const { focus, selected: node } = forest;
  const bench = part("bench");
  bench.dataset.panel = node ? "open" : "closed";
  if (node) {
    const lookOf = lookup(team(), palette);
    panel.show(focus, node, { lookOf, palette, state, config: page.config, collapsed: null });
  } else panel.clear();
}

function drawLog() {
  const host = part("log");
  const newest = state.logs.at(-1);
  if (!newest || host.dataset.newest === String(newest.time)) return;
  host.dataset.newest = String(newest.time);
  part("logCard").hidden = false;
  const atEnd = host.scrollHeight - host.scrollTop - host.clientHeight < 40;
  host.replaceChildren(
    ...state.logs.map((line) =>
      element("div", { class: `level-${line.level}` }, `${clock(line.time)} ${line.message}`),
    ),
  );
  if (atEnd) host.scrollTop = host.scrollHeight;
}

function drawStream() {
  const host = part("stream");
  const text = statusText(streamStatus, status.state, clock);
  setText(host, text);
  host.dataset.kind = text === "ended" ? "ended" : streamStatus.kind;
  host.dataset.seq = state.seq;
}

function selected() {
  writeHash();
  changed();
}

function focused(tree) {
  part("back").hidden = !tree;
  const box = part("statement");
  box.hidden = !tree;
  if (tree) {
    setText(box, tree.statement);
    setText(part("forestTitle"), `Tree ${tree.id}: ${tree.problem}`);
    showStage();
  } else setText(part("forestTitle"), "Search trees");
}

/** A tree is drawn at the top of the stage, which a tile far down may have left behind. */
function showStage() {
  const stage = part("stage");
  if (stage.getBoundingClientRect().top < 0) stage.scrollIntoView({ block: "start" });
}

function readHash() {
  const fields = new URLSearchParams(location.hash.slice(1));
  const tree = Number(fields.get("tree"));
  return tree ? { tree, node: Number(fields.get("node")) || null } : null;
}

function writeHash() {
  const fields = new URLSearchParams();
  if (forest.focus) fields.set("tree", forest.focus.id);
  if (forest.selected) fields.set("node", forest.selected.id);
  const hash = fields.size ? `#${fields}` : "";
  history.replaceState(null, "", `${location.pathname}${location.search}${hash}`);
}

/** Opens the tree and node of the address, from the fold or, for an older tree, the server. */
function followDeepLink() {
  if (!deepLink || !state.seq) return;
  const { tree: id, node } = deepLink;
  deepLink = null;
  const tree = state.trees.get(id);
  if (tree) forest.setFocus(tree, tree.nodes.get(node) ?? null);
  else if (node) loadOlderNode(id, node);
}

function nodeAddress(tree, node) {
  return page.urls.node.replace("TREE", tree).replace("NODE", node);
}

async function loadOlderNode(id, node) {
  try {
    const tree = treeOfNode(await browser.load(nodeAddress(id, node)));
    forest.setFocus(tree, tree.nodes.get(node));
  } catch (error) {
    console.warn("grove: the node of this address cannot be shown:", error.message);
  }
}

function restart() {
  state = emptyState();
  chartsVersion = "";
}

part("current").addEventListener("click", () => forest.followStep(null));
part("previous").addEventListener("click", () => {
  forest.followStep(forestSteps(state)[1] ?? null);
});
part("back").addEventListener("click", () => forest.setFocus(null));
addEventListener("themechange", () => {
  palette = readPalette();
  forest.themeChanged();
  charts.themeChanged();
  changed();
});
addEventListener("hashchange", () => {
  deepLink = readHash();
  changed();
});
// Waits and times left count on while no event comes.
setInterval(() => !document.hidden && changed(), 1000);

const address = new URL(page.urls.stream, location.href);
address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
const stream = new RunStream({
  url: address.href,
  run: page.run.id,
  stateUrl: page.urls.state,
  after: 0,
  epoch: page.run.epoch,
  topics: TOPICS,
  onEvents: (events) => {
    fold(events, state);
    changed();
  },
  onReset: restart,
  onRunStatus: (told) => {
    status = told;
    changed();
  },
  onStatus: (told) => {
    streamStatus = told;
    changed();
  },
});
document.addEventListener("visibilitychange", () => {
  stream.visibilityChanged();
  changed();
});
draw();
stream.start();
