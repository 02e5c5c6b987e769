import { creditTerms } from "/static/js/node/credit.js";
import { equal, ok, test } from "./check.js";

// Worked by hand: lambda 0.25, gamma 0.5. Node 2 repairs node 1; node 3 is its sibling.
const CONFIG = { advantage: "mars2", shaping_lambda: 0.25, shaping_gamma: 0.5 };
const STANDARDISED = { form: "standardised", of_agent: false };

function aTree() {
  const node = (id, parent, agent, score, shaped) => ({ id, parent, agent, score, shaped, advantage: null, closed: true });
  // Node 1 has neither parent nor sibling, so its baseline is its own score. Node 2: baseline
  // .75 * 0 + .25 * 0, shaped reward 1 + .5 * (1 - 0). Node 3: baseline .75 * 0 + .25 * 1, shaped
  // reward 0 + .5 * (0 - .25).
  const nodes = [node(1, 0, "oak", 0, 0), node(2, 1, "fern", 1, 1.5), node(3, 1, "oak", 0, -0.125)];
  const mean = (0 + 1.5 - 0.125) / 3;
  const squares = nodes.map(({ shaped }) => (shaped - mean) ** 2);
  const deviation = Math.sqrt(squares.reduce((sum, one) => sum + one, 0) / 2);
  for (const one of nodes) one.advantage = (one.shaped - mean) / deviation;
  return { mean, deviation, nodes: new Map(nodes.map((one) => [one.id, one])) };
}

const close = (a, b, about) => ok(Math.abs(a - b) < 1e-6, `${about}: ${a} is not ${b}`);

test("parent and siblings make the baseline, and the terms add up to the recorded reward", () => {
  const tree = aTree();
  const root = creditTerms(tree, tree.nodes.get(1), CONFIG, STANDARDISED);
  equal([root.parent, root.siblings, root.baseline, root.shaping], [null, null, 0, 0]);
  const repair = creditTerms(tree, tree.nodes.get(2), CONFIG, STANDARDISED);
  equal([repair.parent, repair.siblings, repair.siblingCount, repair.baseline, repair.shaping], [0, 0, 1, 0, 0.5]);
  const other = creditTerms(tree, tree.nodes.get(3), CONFIG, STANDARDISED);
  equal([other.baseline, other.shaping, other.penalty], [0.25, -0.125, 0]);
  close(other.group.explained, tree.nodes.get(3).advantage, "the advantage");
  close(other.group.mean, tree.mean, "the mean");
  close(other.group.deviation, tree.deviation, "the deviation");
});

test("the remainder is the penalty, and an advantage that the terms do not give is unexplained", () => {
  const tree = aTree();
  tree.nodes.get(3).shaped = -0.625;
  close(creditTerms(tree, tree.nodes.get(3), CONFIG, STANDARDISED).penalty, -0.5, "the penalty");
  tree.nodes.get(2).advantage += 0.1;
  equal(creditTerms(tree, tree.nodes.get(2), CONFIG, STANDARDISED).group.explained, null);
});

test("an agent's own group is of its nodes; a node without a score has no terms", () => {
  const tree = aTree();
  const { group } = creditTerms(tree, tree.nodes.get(1), { ...CONFIG, advantage: "per_agent" }, { ...STANDARDISED, of_agent: true });
  equal([group.count, group.mean, group.ofAgent], [2, -0.0625, true]);
  equal(creditTerms(tree, { ...tree.nodes.get(1), score: null }, CONFIG, STANDARDISED), null);
  equal(creditTerms(tree, { ...tree.nodes.get(1), shaped: null }, CONFIG, STANDARDISED).group, null);
});

test("a centred advantage is explained by the mean alone, and one without a form by nothing", () => {
  const tree = aTree();
  const node = tree.nodes.get(2);
  node.advantage = 1.5 - tree.mean;
  close(creditTerms(tree, node, CONFIG, { form: "centred", of_agent: false }).group.explained, node.advantage, "centred");
  equal(creditTerms(tree, node, CONFIG, { form: "", of_agent: false }).group.explained, null);
});

test("parts and gates are terms of their own, and the penalty is what they leave", () => {
  const tree = aTree();
  const [wrong, repair, other] = [1, 2, 3].map((id) => tree.nodes.get(id));
  repair.gates = { format: 0.5 };
  repair.parts = { tests: 0.75, concise: -0.125 };
  repair.shaped = 0.625;
  const terms = creditTerms(tree, repair, CONFIG, STANDARDISED);
  equal([terms.raw, terms.gates, terms.parts], [1, [["format", 0.5]], [["concise", -0.125]]]);
  equal([terms.baseline, terms.shaping, terms.penalty], [0, 0.25, 0]); // 0.5 + 0.25 - 0.125
  equal(creditTerms(tree, other, CONFIG, STANDARDISED).baseline, 0.125); // the sibling's, gated
  wrong.score = 1;
  wrong.gates = { format: 0 };
  equal(creditTerms(tree, other, CONFIG, STANDARDISED).parent, 0);
});

test("a node without a judge's grade has no credit, and is in nobody's baseline", () => {
  const tree = aTree();
  const [, repair, other] = [1, 2, 3].map((id) => tree.nodes.get(id));
  other.shaped = other.advantage = null;
  const terms = creditTerms(tree, repair, CONFIG, STANDARDISED);
  equal([terms.siblings, terms.siblingCount, terms.ungraded, terms.group.count], [null, 0, false, 2]);
  equal(creditTerms(tree, other, CONFIG, STANDARDISED).ungraded, true);
  for (const one of tree.nodes.values()) one.shaped = null;
  equal(creditTerms(tree, other, CONFIG, STANDARDISED).ungraded, false); // its credit is still to come
});
