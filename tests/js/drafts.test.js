import { draftNote, Drafts, MOST_SHOWN, QUIET_MS } from "/static/js/run/drafts.js";
import { waitOf } from "/static/js/run/progress.js";
import { equal, test } from "./check.js";

const node = (id, closed = false) => [id, { id, closed, agent: "oak" }];
const tree = (id, ...nodes) => [id, { id, nodes: new Map(nodes) }];
const state = (...trees) => ({ trees: new Map(trees) });
const draft = (tree, node, text) => ({ tree, node, agent: "oak", tokens: text.length, text });
const shown = (drafts, state) => drafts.inFlight(state).map(({ node, draft }) => [node.id, draft?.text ?? null]);

test("open nodes are shown with what they have so far, closed ones are not", () => {
  const drafts = new Drafts();
  drafts.take([draft(9, 1, "a"), draft(9, 2, "b")]);
  equal(shown(drafts, state(tree(9, node(1, true), node(2), node(3)))), [[2, "b"], [3, null]]);
  equal(drafts.of({ id: 9 }, { id: 1 }), null);
});

test("a newer text replaces the older one, and a missing one keeps it", () => {
  const drafts = new Drafts();
  const before = drafts.version;
  drafts.take([draft(9, 1, "a"), draft(9, 2, "b")]);
  drafts.take([draft(9, 1, "ab")]);
  equal(shown(drafts, state(tree(9, node(1), node(2)))), [[1, "ab"], [2, "b"]]);
  equal(drafts.version > before, true);
  drafts.clear();
  equal(shown(drafts, state(tree(9, node(1)))), [[1, null]]);
});

test("a draft that arrives before its node is open is kept only if the node opens", () => {
  const drafts = new Drafts();
  drafts.take([draft(9, 5, "early")]);
  equal(drafts.of({ id: 9 }, { id: 5 }).text, "early");
  equal(shown(drafts, state(tree(9, node(5)))), [[5, "early"]]);
});

test("a frame without drafts says that no engine writes, until there are texts again", () => {
  const drafts = new Drafts();
  drafts.take([draft(9, 1, "a")]);
  drafts.take([]);
  equal([drafts.ended, shown(drafts, state(tree(9, node(1))))], [true, [[1, null]]]);
  drafts.take([draft(12, 1, "b")]);
  equal(drafts.ended, false);
  drafts.take([]);
  drafts.clear(); // the engine begins again
  equal(drafts.ended, false);
});

test("texts are quiet since the last frame that had one, and always without a text", () => {
  const drafts = new Drafts();
  equal(drafts.quiet(1000), Infinity);
  drafts.take([draft(9, 1, "a")], 1000);
  equal(drafts.quiet(3500), 2500);
  drafts.inFlight(state(tree(9, node(1, true))));
  equal(drafts.quiet(3500), Infinity);
});

test("a wait is no warning while texts grow", () => {
  const run = { waiting: { name: "answers of oak", since: 0, deadline: 3600 } };
  const status = { state: "running", waiting: null };
  equal(waitOf(run, status, 20_000).kind, "warn");
  equal(waitOf(run, status, 20_000, QUIET_MS).kind, "warn");
  equal(waitOf(run, status, 20_000, QUIET_MS - 1), null);
  const evaluation = { waiting: { name: "evaluation", since: 0, deadline: 60, done: 1, total: 4 } };
  equal(waitOf(evaluation, status, 20_000, 0).text.startsWith("1 of 4"), true);
});

test("of many trees the newest is shown, of many nodes the newest", () => {
  const drafts = new Drafts();
  const many = Array.from({ length: MOST_SHOWN + 4 }, (_, index) => node(index + 1));
  const rows = drafts.inFlight(state(tree(9, node(1)), tree(40, ...many)));
  equal([rows.length, rows[0].tree.id, rows[0].node.id, rows.at(-1).node.id], [MOST_SHOWN, 40, 5, MOST_SHOWN + 4]);
});

test("the note says how much there is, or why there is nothing", () => {
  equal(draftNote({ tokens: 1 }, true), "1 token so far");
  equal(draftNote({ tokens: 12 }, true), "12 tokens so far");
  equal(draftNote({ tokens: 12 }, true, QUIET_MS + 5000), "12 tokens so far, none for 20 s");
  equal(draftNote(null, true), "Waiting for the first tokens");
  equal(draftNote(null, false).startsWith("The text appears when it is complete"), true);
});
