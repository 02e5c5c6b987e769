/** The strip above the trees: progress, durations, waits; errors; the final result. */

import { element, setText } from "../lib/dom.js";
import { phaseOf, progressOf, totals } from "./estimate.js";
import { count, duration, number, percent, points } from "../lib/format.js";
import { markIcon } from "../forest/marks.js";
import { failureOf, failurePanel } from "./failure.js";
import { QUIET_MS } from "./drafts.js";
import { shareOf, spentOf } from "./search-model.js";
import { bestCheckpoint, familyFigures, result, validationChange } from "./outcomes.js";
import { hasEnded } from "../stream/stream.js";

const RESUMABLE = ["failed", "stopped"];

export class Progress {
  /** @param parts the elements with these names; `page` is the page's JSON. */
  constructor(parts, page) {
    Object.assign(this, parts);
    this.labels = new Map(page.states.map((state) => [state.value, state]));
    this.canOperate = page.run.can_operate;
    this.search = page.search; // of a search at test time, or null
    this.tracked = page.run.tracked; // another program logs it, and resumes it
  }

  /**
   * @param status the run's row as of the server's last frame; agents as in the forest;
   *   `connection` is {kind, title, text}, or null while the page is up to date; `row` is the run's
   *   current row, where `status` is of an earlier event: it decides which actions are offered;
   *   `quiet`: for how many milliseconds no text of a node in flight has grown.
   */
  show(state, status, agents, palette, now, connection, row = status, quiet = Infinity) {
    this.#state(status, row);
    this.#facts(state, status, now);
    this.#banners(state, status, now, connection, quiet);
    this.#figures(state, agents, palette);
    this.#result(state, status, agents, palette);
  }

  #state(status, row) {
    const { label, colour } = this.labels.get(status.state);
    setText(this.pill, label);
    this.pill.dataset.colour = colour;
    this.pill.dataset.state = status.state;
    const stoppable = ["queued", "starting", "running"].includes(row.state);
    this.stop.hidden = !this.canOperate || !(stoppable || row.state === "stopping");
    this.stopButton.disabled = row.state === "stopping" || row.stop_requested;
    setText(this.stopButton, this.stopButton.disabled ? "Stopping…" : "Stop");
    if (this.kill) this.kill.hidden = !(stoppable || row.state === "stopping");
    this.resume.hidden = this.tracked || !this.canOperate || !RESUMABLE.includes(row.state);
  }

  #facts(state, status, now) {
    if (this.search) {
      this.#spent(state, status, now);
      return;
    }
    if (this.tracked) {
      this.#trackedFacts(state, status, now);
      return;
    }
    const progress = progressOf(state);
    this.bar.value = status.state === "finished" ? 1 : progress.share;
    const most = progress.steps || status.steps || "–";
    const facts = [fact("Step", progress.byMinutes ? `${progress.done}` : `${progress.done} of ${most}`)];
    if (progress.minutes) facts.push(fact("Training", `${progress.minutesDone.toFixed(1)} of ${progress.minutes} min`));
    const running = status.state === "running" || status.state === "starting";
    if (running && progress.secondsLeft !== null && progress.share < 1) {
      facts.push(fact("Left", `about ${duration(progress.secondsLeft)}`));
    }
    if (running) facts.push(fact("Now", phaseOf(state)));
    const end = hasEnded(status.state) ? state.time : now;
    if (state.startedAt) facts.push(fact("Elapsed", duration((end - state.startedAt) / 1000)));
    const { nodes, tokens } = totals(state);
    facts.push(fact("Generated", `${count(nodes, "node")}, ${count(tokens, "token")}`));
    const best = bestCheckpoint(state);
    if (best) facts.push(fact("Best checkpoint", `step ${best.step}, ${percent(best.validation)} on validation`));
    if (state.resumes) facts.push(fact("Resumed", count(state.resumes, "time")));
    replaceIfChanged(this.facts, facts);
  }

  /** Shows how much of each limit a search has used. */
  /** Shows how far another program says it is. */
  #trackedFacts(state, status, now) {
    const { steps } = state.plan;
    const step = Math.max(state.step, state.logged.step);
    this.bar.value = status.state === "finished" ? 1 : steps ? Math.min(1, step / steps) : 0;
    const end = hasEnded(status.state) ? state.time : now;
    const facts = [fact("Step", steps ? `${step} of ${steps}` : String(step))];
    if (state.startedAt) facts.push(fact("Elapsed", duration((end - state.startedAt) / 1000)));
    const { nodes, tokens } = totals(state);
    if (nodes) facts.push(fact("Generated", `${count(nodes, "answer")}, ${count(tokens, "token")}`));
    replaceIfChanged(this.facts, facts);
  }

  #spent(state, status, now) {
    const rows = spentOf(state, this.search.budget, now);
    this.bar.value = status.state === "finished" ? 1 : shareOf(rows);
    const facts = rows.map(({ name, used, most }) =>
      fact(`${name[0].toUpperCase()}${name.slice(1)}`, `${used} of ${most}`),
    );
    const end = hasEnded(status.state) ? state.time : now;
    if (state.startedAt) facts.push(fact("Elapsed", duration((end - state.startedAt) / 1000)));
    facts.push(fact("Generated", count(totalTokens(state), "token")));
    if (state.resumes) facts.push(fact("Restarted", count(state.resumes, "time")));
    replaceIfChanged(this.facts, facts);
  }

  #banners(state, status, now, connection, quiet) {
    const notes = [];
    if (connection) notes.push(note(connection.kind, connection.title, connection.text));
    const waiting = hasEnded(status.state) ? null : waitOf(state, status, now, quiet);
    if (waiting) notes.push(note(waiting.kind, waiting.title, waiting.text));
    const error = status.state === "failed" ? state.error : null;
    const message = error?.message ?? (status.state === "failed" ? status.error : "");
    if (message) {
      const can = this.canOperate && !this.resume.hidden ? this.resume : null;
      notes.push(failurePanel(failureOf(state, message), this.#resumeText(state), can));
    }
    if (status.state === "stopped") notes.push(note("warn", "Stopped.", this.#resumeText(state)));
    replaceIfChanged(this.notes, notes);
  }

  #resumeText(state) {
    if (this.tracked) return "Its program continues it by grove.init(id=..., resume=\"allow\").";
    return this.search ? "Search again starts with an empty tree." : resumeText(state);
  }

  #figures(state, agents, palette) {
    if (this.search || (this.tracked && !state.steps.length)) return;
    const validated = this.tracked && !state.evaluations.length ? [] : agents;
    const cards = validationChange(state, validated.map((agent) => agent.name)).map((row, index) => {
      const change = row.before === null ? "on validation" : changeText(row.before, row.now, "on validation");
      const icon = markIcon({ ...agents[index], outcome: "open" }, palette);
      return figure([icon, `${row.agent} Pass@1`], percent(row.now), change);
    });
    const last = state.steps.at(-1);
    const first = state.steps[0];
    cards.push(
      this.tracked // whose rewards need not be from 0 to 1
        ? figure(["Reward"], number(last.reward), `${number(first.reward)} in the first step`)
        : figure(["Reward"], percent(last?.reward), first ? changeText(first.reward, last.reward) : "mean of a step"),
      figure(["Solved trees"], percent(last?.solved, 0), first ? changeText(first.solved, last.solved) : "of a step"),
    );
    if (last) {
      cards.push(figure(["Speed"], rateText(last), "nodes per second"));
    }
    replaceIfChanged(this.figures, cards, palette.text);
  }

  #result(state, status, agents, palette) {
    const test = result(state);
    this.result.hidden = !test || status.state !== "finished";
    if (this.result.hidden) return;
    const { before, after } = test;
    const cells = agents.map((agent) =>
      outcomeCell(
        [markIcon({ ...agent, outcome: "open" }, palette), `${agent.name} Pass@1`],
        before.agents[agent.name],
        after.agents[agent.name],
        `± ${percent(after.standard_errors[agent.name])}`,
      ),
    );
    if (after.tree !== null && after.tree !== undefined) {
      const samples = after.samples ?? null;
      const aside = samples === null ? "" : `${percent(samples)} with independent samples`;
      cells.push(outcomeCell([after.tree_nodes ? `Team, tree of ${after.tree_nodes}` : "Team, tree"], before.tree, after.tree, aside));
    }
    const families = familyFigures(test, agents.map((agent) => agent.name));
    const title = element("h2", {}, "Test result");
    const about = `${count(after.problems, "test problem")}, before and after training`;
    replaceIfChanged(
      this.result,
      [
        title,
        element("p", { class: "muted small" }, about),
        element("div", { class: "result-grid" }, cells),
        ...(families.length ? [familyTable(families, after.tree_nodes)] : []),
      ],
      palette.text,
    );
  }
}

/** Returns what a run waits for, {kind, title, text}: from the log, else from the row. While texts
 *  grow, the agents are at work, and a wait for them is no warning. */
export function waitOf(state, status, now, quiet = Infinity) {
  const wait = state.waiting ?? fromRow(status.waiting);
  if (!wait) {
    const queued = status.state === "queued";
    return queued ? { kind: "warn", title: "Queued.", text: "Waiting for a worker." } : null;
  }
  const seconds = (now - wait.since) / 1000;
  if (wait.total) return evaluationOf(wait, seconds);
  if (quiet < QUIET_MS) return null;
  return { kind: "warn", title: "Waiting", text: waitText(wait, seconds) };
}

/** An evaluation is work, so its note is no warning. */
function evaluationOf({ name, done, total }, seconds) {
  const title = `${name[0].toUpperCase()}${name.slice(1)}:`;
  return { kind: "", title, text: `${done} of ${count(total, "program")} evaluated, ${duration(seconds)}` };
}

function waitText({ name, deadline }, seconds) {
  const passed = `for ${name}, ${duration(seconds)}`;
  if (!deadline) return passed;
  const most = duration(deadline);
  return seconds > deadline ? `${passed}: longer than the limit of ${most}` : `${passed} of at most ${most}`;
}

function fromRow(waiting) {
  if (!waiting) return null;
  const since = Date.parse(waiting.since);
  const deadline = waiting.deadline ? (Date.parse(waiting.deadline) - since) / 1000 : 0;
  return { name: waiting.name, since, deadline };
}

function resumeText(state) {
  const step = state.checkpoints.at(-1)?.step;
  return step ? `Resume continues from the checkpoint of step ${step}.` : "Resume starts from the beginning.";
}

/** Nodes per second of a step; an external engine may have measured neither. */
function rateText({ nodes, seconds }) {
  const rate = Number.isFinite(nodes) && seconds ? nodes / seconds : NaN;
  return Number.isFinite(rate) ? rate.toFixed(rate < 10 ? 1 : 0) : "–";
}

function changeText(before, now, where = "since the start") {
  if (!Number.isFinite(before) || !Number.isFinite(now)) return where;
  return before === now ? `no change ${where}` : `${points(now - before)} points ${where}`;
}

function totalTokens(state) {
  const nodes = [...state.trees.values()].flatMap((tree) => [...tree.nodes.values()]);
  return nodes.reduce((sum, node) => sum + (node.tokens ?? 0), 0);
}

function fact(name, value) {
  return element("span", {}, element("span", { class: "muted" }, `${name} `), element("b", {}, value));
}

function figure(label, value, sub) {
  return element(
    "div",
    { class: "card figure" },
    element("div", { class: "label" }, ...label),
    element("div", { class: "value" }, value),
    element("div", { class: "sub" }, sub),
  );
}

const FAMILY_NAMES = { stated: "fully stated" };

/** Returns a table of the figures of `outcomes.familyFigures`. */
function familyTable(families, nodes) {
  const titles = { tree: nodes ? `Tree of ${nodes}` : "Tree", samples: nodes ? `${nodes} samples` : "Samples" };
  const heads = families[0].figures.map(({ name }) => element("th", { scope: "col" }, titles[name] ?? name));
  const rows = families.map(({ family, problems, figures }) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, `${FAMILY_NAMES[family] ?? family} (${problems})`),
      ...figures.map(({ before, after }) => element("td", {}, `${percent(before)} → ${percent(after)}`)),
    ),
  );
  const head = element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Problems"), ...heads));
  const table = element("table", { class: "table" }, head, element("tbody", {}, ...rows));
  return element("div", { class: "table-wrap families" }, table);
}

function outcomeCell(label, before, after, aside) {
  const change = Number.isFinite(before) && Number.isFinite(after) ? after - before : NaN;
  return element(
    "div",
    {},
    element("div", { class: "label muted small" }, ...label),
    element(
      "div",
      { class: "value" },
      percent(before),
      element("span", { class: "arrow" }, " → "),
      percent(after),
    ),
    element(
      "div",
      { class: "small" },
      element("b", { class: change > 0 ? "up" : change < 0 ? "down" : null }, `${points(change)} points`),
      element("span", { class: "muted" }, aside ? ` · ${aside}` : ""),
    ),
  );
}

function note(kind, title, text, ...more) {
  // A wait counts seconds: announced each time, it would keep a screen reader busy.
  const role = kind === "bad" ? "alert" : null;
  return element(
    "div",
    { class: `note ${kind}`, role },
    element("div", {}, element("b", {}, title), " ", element("span", {}, text), more),
  );
}

/** Replaces children only if their text changed: keeps focus and details, no announcements. */
function replaceIfChanged(host, children, extra = "") {
  const version = extra + children.map((child) => child.textContent).join("\n");
  if (host.dataset.version === String(hash(version))) return;
  host.dataset.version = String(hash(version));
  host.replaceChildren(...children);
}

function hash(text) {
  let value = 0;
  for (let index = 0; index < text.length; index += 1) {
    value = (Math.imul(value, 31) + text.charCodeAt(index)) | 0;
  }
  return value;
}
