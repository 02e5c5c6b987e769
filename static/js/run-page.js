/**
 * The run page: the stream feeds the fold, and everything on the page is drawn from the fold.
 *
 * What the server knows beside the log (queued, stopping, who holds the run) comes with `status`
 * frames; the log never waits for it.
 */

import { addressOf, readAddress } from "./address.js";
import { Charts } from "./charts.js";
import { element, setText } from "./dom.js";
import { found, isAsking, matcher, readFilters } from "./filters.js";
import { agentsOf, emptyState, fold, forestSteps } from "./fold.js";
import { lookup } from "./forest-paint.js";
import { ForestTools } from "./forest-tools.js";
import { Forest } from "./forest.js";
import { clock } from "./format.js";
import { drawLegend } from "./legend.js";
import { MachineBar } from "./machine-bar.js";
import { markOf, readPalette } from "./marks.js";
import { NodePanel } from "./node-panel.js";
import { hasEnded, Progress } from "./progress.js";
import { chartsOf } from "./series.js";
import { browser, connectionNote, RunStream, statusText, TOPICS } from "./stream.js";
import { firstPassed } from "./team.js";
import { showTeam } from "./team-view.js";
import { TimeMachine } from "./time-machine.js";
import { Twin } from "./twin.js";

const part = (name) => document.querySelector(`[data-part="${name}"]`);
const partsOf = (kind) =>
  Object.fromEntries([...document.querySelectorAll(`[data-${kind}]`)].map((node) => [node.dataset[kind], node]));
const page = JSON.parse(document.getElementById("page").textContent);

const treesToCome = part("noTreesText").textContent;
let live = emptyState(); // fold of all that has arrived
let status = page.status;
let streamStatus = { kind: "connecting" };
let palette = readPalette();
let drawing = false;
let chartsVersion = "";
let deepLink = readAddress(location.hash);
let filters = deepLink?.filters ?? readFilters(new URLSearchParams());

const machine = new TimeMachine({
  loadState: (seq) => browser.load(`${page.urls.state}?seq=${seq}`),
  loadEvents,
  head: () => live.seq,
  onChange: () => {
    writeHash();
    changed();
  },
  onLive: refreshFocus,
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
const panel = new NodePanel(part("panel"), {
  close: () => forest.setFocus(forest.focus, null),
  pick: (tree, node) => forest.setFocus(tree, node),
  collapse: (tree, node) => forest.toggleFold(tree, node),
  load: (tree, node) => browser.load(page.urls.node.replace("TREE", tree).replace("NODE", node)),
});
const tools = new ForestTools(
  partsOf("tool"),
  {
    filter: (wanted) => {
      filters = wanted;
      writeHash();
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
    step: (step) => goToStep(step),
  },
  page,
);
const bar = new MachineBar(partsOf("machine"), machine, firstSolved);
const charts = new Charts(part("charts"));
const twin = new Twin(part("twin"), (tree, node) => forest.setFocus(tree, node));
const progress = new Progress(
  Object.fromEntries(
    ["pill", "stop", "stopButton", "kill", "resume", "bar", "facts", "notes", "figures", "result"].map(
      (name) => [name, part(name)],
    ),
  ),
  page,
);

/** The state that the page shows: the newest, or an earlier one. */
function shownState() {
  return machine.state ?? live;
}

/** The team in its order, with the look of each agent. */
function team() {
  const names = page.agents.map((agent) => agent.name);
  for (const name of agentsOf(live)) if (!names.includes(name)) names.push(name);
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
  const state = shownState();
  const agents = team();
  const names = agents.map((agent) => agent.name);
  const now = machine.active ? state.time : Date.now();
  const connection = connectionNote(streamStatus, Date.now(), clock);
  progress.show(state, statusAt(state), agents, palette, now, connection, status);
  followDeepLink();
  forest.show(state, agents, machine.active);
  const asked = isAsking(filters) ? found(forest.trees, matcher(filters)) : null;
  forest.setMatched(asked?.ids ?? null);
  drawForestHead(state, agents, asked);
  drawPanel(state);
  showTeam(part("team"), forest.trees, agents, palette);
  bar.show(live, state);
  const last = state.steps.at(-1);
  const version = [last?.step, last?.seq, state.updates.length, state.evaluations.length, state.resumes].join();
  if (version !== chartsVersion) {
    chartsVersion = version;
    charts.show(chartsOf(state, names), agents);
  }
  drawLog(state);
  drawStream(state);
}

/** The run's row is of now; at an earlier moment its state is what the log said then. */
function statusAt(state) {
  if (!machine.active) return status;
  return { ...status, state: state.run.state, waiting: null, error: state.error?.message ?? "" };
}

function drawForestHead(state, agents, asked) {
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
  const nodes = forest.trees.reduce((sum, tree) => sum + tree.nodes.size, 0);
  tools.show(asked, { trees: forest.trees.length, nodes }, Boolean(forest.focus), live.steps.length);
  part("noMatch").hidden = !asked || asked.nodes > 0;
  part("canvas").toggleAttribute("data-drags", forest.camera.k > 1);
  part("noTrees").hidden = forest.trees.length > 0 || Boolean(forest.focus);
  part("stage").hidden = !part("noTrees").hidden;
  const ended = "The run was over before its first step.";
  setText(part("noTreesText"), hasEnded(status.state) ? ended : treesToCome);
  twin.show(state.seq, forest.shown, forest.focus, forest.open, asked?.ids);
  drawLegend(part("legend"), agents, palette, forest.colour);
}

function drawPanel(state) {
  const { focus, open: node } = forest;
  part("bench").dataset.panel = node ? "open" : "closed";
  if (!node) {
    panel.clear();
    return;
  }
  const lookOf = lookup(team(), palette, forest.colour);
  const collapsed = forest.folds.get(focus.id);
  panel.show(focus, node, { lookOf, palette, state, config: page.config, collapsed });
}

function drawLog(state) {
  const host = part("log");
  const newest = state.logs.at(-1);
  if (host.dataset.newest === String(newest?.seq ?? "")) return;
  host.dataset.newest = String(newest?.seq ?? "");
  part("logCard").hidden = !newest;
  const atEnd = host.scrollHeight - host.scrollTop - host.clientHeight < 40;
  host.replaceChildren(
    ...state.logs.map((line) =>
      element("div", { class: `level-${line.level}` }, `${clock(line.time)} ${line.message}`),
    ),
  );
  if (atEnd) host.scrollTop = host.scrollHeight;
}

function drawStream(state) {
  const host = part("stream");
  const text = statusText(streamStatus, status.state, clock);
  setText(host, text);
  host.dataset.kind = text === "ended" ? "ended" : streamStatus.kind;
  host.dataset.seq = live.seq;
  host.dataset.shown = state.seq;
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

function writeHash() {
  // Until it was followed, an address is not written over.
  if (deepLink) return;
  const seq = machine.active && !machine.playing ? machine.seq : null;
  const hash = addressOf({ tree: forest.focus?.id, node: forest.selected?.id, seq, filters });
  if (hash !== location.hash) {
    history.replaceState(null, "", `${location.pathname}${location.search}${hash}`);
  }
}

/** Opens the moment, tree and node of the address: from the fold or, if older, the server. */
async function followDeepLink() {
  if (!deepLink || !live.seq) return;
  const { tree: id, node, seq, filters: asked } = deepLink;
  deepLink = null;
  filters = asked;
  tools.set(asked);
  if (seq && seq < live.seq) await machine.seek(seq);
  else if (machine.active) machine.live();
  const tree = id && (shownState().trees.get(id) ?? (await loadOlderTree(id)));
  if (tree) forest.setFocus(tree, tree.nodes.get(node) ?? null);
}

/** An older tree in focus, of which only an earlier moment is known, is fetched as it is now. */
async function refreshFocus() {
  const { focus } = forest;
  if (!focus || !live.seq || live.trees.has(focus.id)) return;
  const tree = await loadOlderTree(focus.id);
  if (tree && forest.focus === focus) forest.setFocus(tree, tree.nodes.get(forest.selected?.id) ?? null);
}

async function loadOlderTree(id) {
  try {
    const href = `${page.urls.tree.replace("TREE", id)}?seq=${shownState().seq}`;
    const { events } = await browser.load(href);
    return fold(events).trees.get(id) ?? null;
  } catch (error) {
    console.warn("grove: the tree of this address cannot be shown:", error.message);
    return null;
  }
}

async function loadEvents(after, until) {
  const address = `${page.urls.events}?after=${after}&until=${until}&topics=${TOPICS.join()}`;
  const reply = await fetch(address);
  if (!reply.ok) throw new Error(`${address} answered ${reply.status}`);
  const lines = (await reply.text()).split("\n");
  return lines.filter(Boolean).map((line) => JSON.parse(line));
}

/** The seq at which the tree in focus was solved first, or any tree of the run. */
async function firstSolved() {
  const mine = forest.focus && (live.trees.get(forest.focus.id) ?? forest.focus);
  const node = mine && firstPassed(mine);
  if (node) return node.closedSeq;
  const { first_solved: first } = await browser.load(page.urls.moments);
  return first?.seq ?? null;
}

/** The end of a step, with its trees as they were then. */
async function goToStep(step) {
  const ended = live.steps.find((one) => one.step === step);
  forest.followStep(null);
  if (ended) await machine.seek(ended.seq);
}

function restart() {
  live = emptyState();
  machine.live();
  chartsVersion = "";
}

part("current").addEventListener("click", () => forest.followStep(null));
part("previous").addEventListener("click", () => {
  forest.followStep(forestSteps(shownState())[1] ?? null);
});
part("back").addEventListener("click", () => forest.setFocus(null));
addEventListener("themechange", () => {
  palette = readPalette();
  forest.themeChanged();
  charts.themeChanged();
  changed();
});
addEventListener("hashchange", () => {
  deepLink = readAddress(location.hash);
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
    fold(events, live);
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
