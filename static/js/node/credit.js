/**
 * The terms behind a node's shaped reward and advantage (engine/credit; docs/algorithm.md,
 * sections 5 and 6). Pure.
 *
 * The recorded figures are authoritative. The terms are recomputed from the tree; any difference
 * is reported as such (the overlong penalty, or a method that sees the whole step). Parts of a reward
 * and gates of a score are recorded where a run has them.
 */

const TINY = 1e-6;

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function deviation(values) {
  if (values.length < 2) return 0;
  const middle = mean(values);
  return Math.sqrt(values.reduce((sum, v) => sum + (v - middle) ** 2, 0) / (values.length - 1));
}

/** The score that is shaped: the raw one, times the gates of its node. */
function gated(node) {
  return Object.values(node.gates ?? {}).reduce((product, gate) => product * gate, node.score);
}

/**
 * Returns {raw, gates, parent, siblings, siblingCount, baseline, shaping, parts, penalty, shaped,
 * group, ungraded}: null where a term does not exist. `gates` and `parts` are [name, value] pairs, parts
 * without the tests; the penalty is what no term explains. `group` is {count, mean, deviation, method,
 * form, advantage, ofAgent, explained}; it is null before the tree got its credit. `ungraded` says that
 * the tree has it and this node has none, for want of a judge's grade.
 *
 * @param config `credit` of the run's settings.
 * @param formula {form, of_agent} of the advantage's method, as the server reports it.
 */
export function creditTerms(tree, node, config, formula) {
  if (!node.closed || node.score === null || node.score === undefined) return null;
  const scored = [...tree.nodes.values()].filter((one) => one.closed && one.score !== null);
  const credited = scored.some((one) => one.shaped !== null);
  // Nodes that a judge gave no grade have no credit, and are in nobody's baseline.
  const around = scored.filter((one) => one.parent === node.parent && one.id !== node.id && (!credited || one.shaped !== null));
  const parent = node.parent === 0 ? null : parentScore(tree, node);
  const siblings = around.length ? mean(around.map(gated)) : null;
  const score = gated(node);
  const baseline = baselineOf(score, parent, siblings, config.shaping_lambda);
  const shaping = config.shaping_gamma * (score - baseline);
  const parts = Object.entries(node.parts ?? {}).filter(([name]) => name !== "tests");
  const terms = {
    raw: node.score,
    gates: Object.entries(node.gates ?? {}),
    parent,
    siblings,
    siblingCount: around.length,
    baseline,
    shaping,
    parts,
    shaped: node.shaped,
    penalty: null,
    group: null,
    ungraded: credited && node.shaped === null,
  };
  if (node.shaped === null) return terms;
  const penalty = node.shaped - parts.reduce((sum, [, value]) => sum + value, score + shaping);
  terms.penalty = Math.abs(penalty) > TINY ? penalty : 0;
  terms.group = groupOf(scored, node, config.advantage, formula);
  return terms;
}

function parentScore(tree, node) {
  const parent = tree.nodes.get(node.parent);
  return parent && parent.score !== null && parent.score !== undefined ? gated(parent) : null;
}

function baselineOf(raw, parent, siblings, lambda) {
  if (parent !== null && siblings !== null) return (1 - lambda) * parent + lambda * siblings;
  return parent ?? siblings ?? raw;
}

function groupOf(scored, node, method, { form, of_agent: ofAgent }) {
  const group = scored.filter((one) => one.shaped !== null && (!ofAgent || one.agent === node.agent));
  const rewards = group.map((one) => one.shaped);
  const result = {
    count: rewards.length,
    mean: mean(rewards),
    deviation: deviation(rewards),
    method,
    form,
    advantage: node.advantage,
    ofAgent,
    explained: null,
  };
  const centred = node.shaped - result.mean;
  const expected = form === "standardised"
    ? result.deviation > 0 ? centred / (result.deviation + 1e-9) : 0
    : form === "centred" ? centred : null;
  // A term that does not lead to the recorded advantage is not shown as its cause.
  if (expected !== null && node.advantage !== null && Math.abs(expected - node.advantage) < 1e-4) result.explained = expected;
  return result;
}
