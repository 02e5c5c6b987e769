/**
 * The run page: the stream feeds the fold, and everything on the page but its charts, whose numbers
 * the server has in buckets, is drawn from the fold.
 *
 * What the server knows apart from the log (queued, stopping, who holds the run) arrives with
 * `status` frames; the log never waits for it. Scripts of what is not visible first, half of the
 * page's, load after the first trees are drawn.
 */

import { agentsOf, emptyState, fold } from "../stream/fold.js";
import { clock } from "../lib/format.js";
import { Drafts } from "../run/drafts.js";
import { MachineBar } from "../run/machine-bar.js";
import { looksOf, readPalette } from "../forest/marks.js";
import { DrawScheduler } from "../forest/scheduler.js";
import { Progress } from "../run/progress.js";
import { RunForest } from "../run/run-forest.js";
import { RunLoads } from "../run/run-loads.js";
import { drawLog, drawStream } from "../run/run-notes.js";
import { browser, connectionNote, hasEnded, RunStream, TOPICS } from "../stream/stream.js";
import { firstPassed } from "../run/team.js";
import { showTeam } from "../run/team-view.js";
import { TimeMachine } from "../run/time-machine.js";

const parts = new Map([...document.querySelectorAll("[data-part]")].map((node) => [node.dataset.part, node]));
const part = (name) => parts.get(name) ?? null;
const partsOf = (kind) =>
  Object.fromEntries([...document.querySelectorAll(`[data-${kind}]`)].map((node) => [node.dataset[kind], node]));
const page = JSON.parse(document.getElementById("page").textContent);

const drafts = new Drafts(); // what nodes in flight have so far
let live = emptyState(); // fold of all that has arrived
let status = page.status;
let streamStatus = { kind: "connecting" };
let palette = readPalette();
let drawn = null; // the state that the trees show, and its seq when drawn
let drawnSeq = 0;
const scheduler = new DrawScheduler(drawTrees, 80);
const slowScheduler = new DrawScheduler(drawTexts, 250); // figures, tables and texts, which nobody reads faster

const loads = new RunLoads(page.urls);
const machine = new TimeMachine({
  loadState: (seq) => loads.state(seq),
  loadEvents: (after, until) => loads.events(after, until),
  head: () => live.seq,
  onChange: () => {
    trees.address.write();
    changed();
  },
  onLive: () => trees.address.refreshFocus(),
  onError: (error) => console.warn("grove: that moment cannot be shown:", error.message),
});
const trees = new RunForest({ part, partsOf }, page, {
  machine,
  loads,
  live: () => live,
  shown: shownState,
  team,
  palette: () => palette,
  changed,
  draftOf: (tree, node) =>
    isWriting()
      ? { draft: drafts.of(tree, node), streams: streams(node.agent), quiet: drafts.quiet(Date.now()) }
      : undefined,
});
const writing = page.search && new (await import("../run/writing-card.js")).WritingCard(part("writing"), { streams, open: (tree, node) => trees.open(tree, node) });
const bar = new MachineBar(partsOf("machine"), machine, firstSolved);
const moment = () => (machine.active ? machine.seq : null);
let charts = null; // until the trees, which come first, are shown
let health = null; // until there is a warning
let values = null; // until something is logged
let program = null; // of a run that another program logs
const answer = page.search && new (await import("../run/search-card.js")).SearchCard(part, page.search, (tree, node) => trees.open(tree, node));
const strip = ["pill", "stop", "stopButton", "kill", "resume", "bar", "facts", "notes", "figures", "result"];
const progress = new Progress(Object.fromEntries(strip.map((name) => [name, part(name)])), page);

/** Returns whether what an agent is writing is known before it is complete. */
function streams(name) {
  return page.agents.find((agent) => agent.name === name)?.drafts ?? false;
}

/** Returns the state that the page shows: the newest, or an earlier one. */
function shownState() {
  return machine.state ?? live;
}

/** Returns the run's status: the current row, or at an earlier event what the log said then. */
function statusAt(state) {
  if (!machine.active) return status;
  return { ...status, state: state.run.state, waiting: null, error: state.error?.message ?? "" };
}

/** Returns whether the run's agents write at this moment: not while its engine starts again, nor in
 *  the past that the page shows. */
function isWriting() {
  return !machine.active && !drafts.ended && ["running", "stopping"].includes(status.state);
}

/** Returns the team in its order, with the look of each agent. */
function team() {
  const names = page.agents.map((agent) => agent.name);
  for (const name of agentsOf(live)) if (!names.includes(name)) names.push(name);
  return looksOf(names, palette);
}

/** Returns the run in the form that its charts need. */
function chartedRun() {
  return {
    id: page.run.id,
    url: page.urls.metrics,
    begun: page.run.begun,
    agents: page.agents.map((agent) => agent.name),
    owners: Object.fromEntries(page.agents.map((agent) => [agent.name, agent.owner])),
    figures: page.figures,
    tracked: page.run.tracked,
  };
}

/** Draws what a program logged by names of its own; the script loads with the first of it. */
function drawLogged({ logged }) {
  if (!values && logged.seq) {
    values = import("../run/logged-values.js").then(
      ({ LoggedValues }) => {
        values = new LoggedValues(part("loggedValues"), part("loggedNotes"), page.urls.logged);
        dataArrived();
      },
      (error) => {
        values = null;
        console.warn("grove: what was logged cannot be shown:", error.message);
      },
    );
  }
  if (values?.draw?.(logged)) part("logged").hidden = false;
}

/** Draws what another program gave as its settings, and its summary. */
function drawProgram(state) {
  if (!program && part("programBody")) {
    program = import("../run/program-card.js").then(
      ({ ProgramCard }) => {
        program = new ProgramCard(part("programBody"), page.program);
        dataArrived();
      },
      (error) => console.warn("grove: the program's settings cannot be shown:", error.message),
    );
  }
  program?.draw?.(status.result?.summary);
  // A run without search has no trees: their card appears with the first one.
  if (page.run.tracked && state.trees.size) part("bench").hidden = false;
}

/** Draws the health warnings; their script loads with the first one. */
function drawHealth(state) {
  if (!health && state.health.length) {
    health = import("../run/health-banner.js").then(
      ({ HealthBanner }) => {
        health = new HealthBanner(part("health"), (seq) => machine.seek(seq));
        dataArrived();
      },
      (error) => {
        health = null;
        console.warn("grove: the health warnings cannot be shown:", error.message);
      },
    );
  }
  health?.draw?.(state);
}

/** Loads the scripts of the node panel and of the charts below the trees. */
async function startDeferred() {
  trees.loadPanel();
  if (!page.urls.metrics || page.search) return;
  try {
    const { RunCharts } = await import("../run/run-charts.js");
    charts = new RunCharts(part("charts"), chartedRun(), moment, {
      section: part("logged"),
      charts: part("loggedCharts"),
      more: part("loggedMore"),
    });
    changed();
  } catch (error) {
    console.warn("grove: the charts cannot be shown:", error.message);
  }
}

function changed() {
  scheduler.drawNow();
  slowScheduler.drawNow();
}

/** Schedules a redraw for new data. */
function dataArrived() {
  scheduler.drawSoon();
  slowScheduler.drawSoon();
}

/** Draws what moves: the trees, the open node, and the position in the log. */
function drawTrees() {
  const state = shownState();
  trees.draw(state, status);
  bar.show(live, state);
  drawn = state;
  drawnSeq = state.seq;
}

/** Draws the rest of the page; the stream's status, drawn last, says how current the page is. */
function drawTexts() {
  const state = shownState();
  if (drawn !== state || drawnSeq !== state.seq) drawTrees();
  const agents = team();
  const now = machine.active ? state.time : Date.now();
  const connection = connectionNote(streamStatus, Date.now(), clock);
  const quiet = machine.active ? Infinity : drafts.quiet(now);
  progress.show(state, statusAt(state), agents, palette, now, connection, status, quiet);
  drawHealth(state);
  drawLogged(state);
  drawProgram(state);
  trees.drawWords(state);
  showTeam(part("team"), trees.trees, agents, palette);
  answer?.show(state, statusAt(state));
  const inFlight = drafts.inFlight(live);
  writing?.show(isWriting() ? inFlight : [], quiet);
  if (state.seq) charts?.show([state.steps.at(-1)?.seq, state.updates.length, state.evaluations.length, state.resumes, state.logged.seq].join());
  drawLog(part("logCard"), part("log"), state);
  drawStream(part("stream"), streamStatus, status.state, live.seq, state.seq);
}

/** Returns the seq at which the tree in focus, or else any tree of the run, was first solved. */
async function firstSolved() {
  const { focus } = trees;
  const mine = focus && (live.trees.get(focus.id) ?? focus);
  const node = mine && firstPassed(mine);
  if (node) return node.closedSeq;
  return (await loads.firstSolved())?.seq ?? null;
}

addEventListener("themechange", () => {
  palette = readPalette();
  trees.themeChanged();
  charts?.themeChanged();
  changed();
});
addEventListener("hashchange", () => {
  trees.address.read();
  changed();
});
// Waits and remaining times count on while no event arrives.
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
    dataArrived();
  },
  onReset: () => {
    live = emptyState();
    drafts.clear();
    machine.live();
  },
  onDrafts: (nodes) => {
    drafts.take(nodes);
    dataArrived();
  },
  onRunStatus: (newStatus) => {
    if (newStatus.comments_changed !== status.comments_changed) trees.comments?.renew();
    if (newStatus.state === "starting" && status.state !== "starting") drafts.clear();
    status = newStatus;
    dataArrived();
  },
  onStatus: (newStatus) => {
    streamStatus = newStatus;
    dataArrived();
  },
});
document.addEventListener("visibilitychange", () => {
  stream.visibilityChanged();
  changed();
});
drawTrees();
drawTexts();
stream.start();
await stream.begun();
const afterFrame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
await afterFrame(); // the state is drawn in one frame, the canvas in the next
await afterFrame();
startDeferred();
