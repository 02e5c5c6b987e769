/**
 * The run page: the stream feeds the fold, and everything on the page is drawn from the fold.
 *
 * What the server knows beside the log (queued, stopping, who holds the run) comes with `status`
 * frames; the log never waits for it.
 */

import { Comments } from "./comments.js";
import { setText } from "./dom.js";
import { found, isAsking, matcher, readFilters, stepsOf } from "./filters.js";
import { agentsOf, emptyState, fold } from "./fold.js";
import { ForestHead } from "./forest-head.js";
import { ForestTools } from "./forest-tools.js";
import { Forest } from "./forest.js";
import { clock } from "./format.js";
import { drawLegend } from "./legend.js";
import { MachineBar } from "./machine-bar.js";
import { looksOf, readPalette } from "./marks.js";
import { lookup } from "./node-look.js";
import { NodePanel } from "./node-panel.js";
import { Pace } from "./pace.js";
import { hasEnded, Progress } from "./progress.js";
import { RunAddress } from "./run-address.js";
import { RunCharts } from "./run-charts.js";
import { RunLoads } from "./run-loads.js";
import { drawLog, drawStream } from "./run-notes.js";
import { SearchCard } from "./search-card.js";
import { Steps } from "./steps.js";
import { browser, connectionNote, RunStream, TOPICS } from "./stream.js";
import { firstPassed } from "./team.js";
import { showTeam } from "./team-view.js";
import { TimeMachine } from "./time-machine.js";
import { Twin } from "./twin.js";

const parts = new Map([...document.querySelectorAll("[data-part]")].map((node) => [node.dataset.part, node]));
const part = (name) => parts.get(name) ?? null;
const partsOf = (kind) =>
  Object.fromEntries([...document.querySelectorAll(`[data-${kind}]`)].map((node) => [node.dataset[kind], node]));
const page = JSON.parse(document.getElementById("page").textContent);

const chartedRun = page.urls.metrics && !page.search && {
  id: page.run.id,
  url: page.urls.metrics,
  agents: page.agents.map((agent) => agent.name),
  owners: Object.fromEntries(page.agents.map((agent) => [agent.name, agent.owner])),
};
const treesToCome = part("noTreesText").textContent;
let live = emptyState(); // fold of all that has arrived
let status = page.status;
let streamStatus = { kind: "connecting" };
let palette = readPalette();
const pace = new Pace(drawTrees, 80);
const slowPace = new Pace(drawWords, 250); // figures, tables and texts, which nobody reads faster
let filters = readFilters(new URLSearchParams());
let drawn = null; // the state that the trees show, and its seq then
let drawnSeq = 0;
let asked = null; // what the filters found, as `filters.found` tells it

const loads = new RunLoads(page.urls);
const steps = new Steps({
  load: (step, seq) => loads.step(step, seq),
  onChange: () => changed(),
  onFault: (error) => console.warn("grove: a step's trees cannot be shown:", error.message),
});
const machine = new TimeMachine({
  loadState: (seq) => loads.state(seq),
  loadEvents: (after, until) => loads.events(after, until),
  head: () => live.seq,
  onChange: () => {
    address.write();
    changed();
  },
  onLive: () => address.refreshFocus(),
  onFault: (error) => console.warn("grove: that moment cannot be shown:", error.message),
});
const forest = new Forest({
  stage: part("stage"),
  canvas: part("canvas"),
  tip: part("tip"),
  onSelect: selected,
  onFocus: focused,
  onView: () => changed(),
});
const discussed = document.querySelector("[data-comments]"); // a guest is shown none
const comments = discussed && new Comments(discussed);
const panel = new NodePanel(part("panel"), {
  close: () => forest.setFocus(forest.focus, null),
  pick: (tree, node) => forest.setFocus(tree, node),
  collapse: (tree, node) => forest.toggleFold(tree, node),
  toStep: (step) => setFilters({ ...filters, step: String(step) }),
  load: (tree, node) => loads.node(tree, node),
  discuss: comments && (() => comments.host.scrollIntoView()),
});
const tools = new ForestTools(
  partsOf("tool"),
  {
    filter: (wanted) => {
      filters = wanted;
      address.write();
      changed();
    },
    colour: (name) => {
      forest.setColour(name);
      changed();
    },
    zoom: (factor) => forest.zoomBy(factor),
    fit: () => forest.fit(),
    follow: (on) => forest.setFollows(on),
    list: (on) => part("twin").toggleAttribute("data-shown", on),
  },
  page,
);
const bar = new MachineBar(partsOf("machine"), machine, firstSolved);
const address = new RunAddress({
  forest,
  machine,
  loads,
  live: () => live,
  shown: shownState,
  filters: () => filters,
  setFilters,
});
const head = new ForestHead(part, (step) => {
  forest.setFocus(null);
  setFilters({ ...filters, step: step === null ? "" : String(step) });
});
const charts = chartedRun && new RunCharts(part("charts"), chartedRun, () => (machine.active ? machine.seq : null));
const answer = page.search && new SearchCard(part, page.search, (tree, node) => forest.setFocus(tree, node));
const twin = new Twin(part("twin"), (tree, node) => forest.setFocus(tree, node));
const progress = new Progress(
  Object.fromEntries(
    ["pill", "stop", "stopButton", "kill", "resume", "bar", "facts", "notes", "figures", "result"].map(
      (name) => [name, part(name)],
    ),
  ),
  page,
);

/** Asks for nodes and steps, as the controls do. */
function setFilters(wanted) {
  filters = wanted;
  tools.set(wanted);
  address.write();
  changed();
}

/** The state that the page shows: the newest, or an earlier one. */
function shownState() {
  return machine.state ?? live;
}

/** The team in its order, with the look of each agent. */
function team() {
  const names = page.agents.map((agent) => agent.name);
  for (const name of agentsOf(live)) if (!names.includes(name)) names.push(name);
  return looksOf(names, palette);
}

function changed() {
  pace.now();
  slowPace.now();
}

/** Something came. */
function news() {
  pace.soon();
  slowPace.soon();
}

/** What moves: the trees, the node that is open, and the place in the log. */
function drawTrees() {
  const state = shownState();
  const agents = team();
  address.follow();
  showTrees(state, agents);
  asked = isAsking(filters) ? found(forest.trees, matcher(filters)) : null;
  forest.setMatched(asked?.ids ?? null, asked ? JSON.stringify(filters) : "");
  drawForestHead(state);
  drawPanel(state);
  bar.show(live, state);
  drawn = state;
  drawnSeq = state.seq;
}

/** The rest of the page, which tells last of all how far the whole page is. */
function drawWords() {
  const state = shownState();
  if (drawn !== state || drawnSeq !== state.seq) drawTrees();
  const agents = team();
  const now = machine.active ? state.time : Date.now();
  const connection = connectionNote(streamStatus, Date.now(), clock);
  progress.show(state, statusAt(state), agents, palette, now, connection, status);
  drawTools(state, agents);
  showTeam(part("team"), forest.trees, agents, palette);
  answer?.show(state, statusAt(state));
  const last = state.steps.at(-1);
  charts?.show([last?.seq, state.updates.length, state.evaluations.length, state.resumes].join());
  drawLog(part("logCard"), part("log"), state);
  drawStream(part("stream"), streamStatus, status.state, live.seq, state.seq);
}

/** The trees of the steps that are asked for; a tree in focus stays among those of its own. */
function showTrees(state, agents) {
  const { focus } = forest;
  const before = focus && !filters.step && state.trees.has(focus.id) && focus.step !== state.step;
  steps.choose(before ? { from: focus.step, to: focus.step } : stepsOf(filters));
  const treeOf = (id) => state.trees.get(id) ?? steps.find(id);
  const shown = steps.trees(state);
  forest.show(shown, treeOf, agents, machine.active);
  if (page.search && shown.length && !forest.focus) forest.setFocus(shown[0]); // it has but one
}

/** The run's row is of now; at an earlier moment its state is what the log said then. */
function statusAt(state) {
  if (!machine.active) return status;
  return { ...status, state: state.run.state, waiting: null, error: state.error?.message ?? "" };
}

function drawForestHead(state) {
  const { trees, focus } = forest;
  const over = hasEnded(status.state) ? (page.search ? "The search was over before its first node." : "The run was over before its first step.") : treesToCome;
  const { full, loading } = steps;
  head.show({ trees, newest: state.step, range: steps.range, full, loading, focus, over });
  part("noMatch").hidden = !asked || asked.nodes > 0 || !trees.length;
  part("canvas").toggleAttribute("data-drags", forest.camera.k > 1);
}

function drawTools(state, agents) {
  const { trees, focus } = forest;
  const nodes = trees.reduce((sum, tree) => sum + tree.nodes.size, 0);
  tools.show(asked, { trees: trees.length, nodes }, Boolean(focus));
  twin.show(state.seq, forest.shown, focus, forest.open, asked?.ids);
  drawLegend(part("legend"), agents, palette, forest.colour);
}

function drawPanel(state) {
  const { focus, open: node } = forest;
  part("bench").dataset.panel = node ? "open" : "closed";
  comments?.show(focus?.id ?? null, node?.id ?? null);
  if (!node) {
    panel.clear();
    return;
  }
  const lookOf = lookup(team(), palette, forest.colour);
  const collapsed = forest.folds.get(focus.id);
  panel.show(focus, node, { lookOf, palette, state, config: page.config, collapsed });
}

function selected() {
  address.write();
  changed();
}

function focused(tree) {
  part("back").hidden = !tree || Boolean(page.search);
  part("compare").hidden = !tree;
  if (tree) part("compare").search = new URLSearchParams({ tree: `${page.run.id}:${tree.id}` });
  const box = part("statement");
  box.hidden = !tree;
  if (tree) {
    setText(box, tree.statement);
    setText(part("forestTitle"), `Tree ${tree.id}: ${tree.problem}`);
    showStage();
  }
}

/** A tree is drawn at the top of the stage, which a tile far down may have left behind. */
function showStage() {
  const stage = part("stage");
  if (stage.getBoundingClientRect().top < 0) stage.scrollIntoView({ block: "start" });
}

/** The seq at which the tree in focus was solved first, or any tree of the run. */
async function firstSolved() {
  const mine = forest.focus && (live.trees.get(forest.focus.id) ?? forest.focus);
  const node = mine && firstPassed(mine);
  if (node) return node.closedSeq;
  return (await loads.firstSolved())?.seq ?? null;
}

function restart() {
  live = emptyState();
  machine.live();
}

part("back").addEventListener("click", () => forest.setFocus(null));
addEventListener("themechange", () => {
  palette = readPalette();
  forest.themeChanged();
  charts?.themeChanged();
  changed();
});
addEventListener("hashchange", () => {
  address.read();
  changed();
});
// Waits and times left count on while no event comes.
setInterval(() => !document.hidden && changed(), 1000);

const socket = new URL(page.urls.stream, location.href);
socket.protocol = location.protocol === "https:" ? "wss:" : "ws:";
const stream = new RunStream({
  url: socket.href,
  run: page.run.id,
  stateUrl: page.urls.state,
  first: page.run.begun ? browser.load(page.urls.state) : null,
  epoch: page.run.epoch,
  topics: TOPICS,
  onEvents: (events) => {
    fold(events, live);
    news();
  },
  onReset: restart,
  onRunStatus: (told) => {
    status = told;
    news();
  },
  onStatus: (told) => {
    streamStatus = told;
    news();
  },
});
document.addEventListener("visibilitychange", () => {
  stream.visibilityChanged();
  changed();
});
drawTrees();
drawWords();
stream.start();
